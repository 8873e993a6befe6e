// The port with TLS as workloads meet it: who gets a certificate, who may connect, whose configuration they get, and
// roots that change.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, stat, writeFile } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import { type TestContext, test } from "node:test";
import tls from "node:tls";
import {
  createAuthority,
  CertificateAuthority,
  createCsr,
  generateKey,
  parseCertificates,
  privateKeyPem,
} from "@tulle/identity";
import { createWorkloadTokenKey, issueWorkloadToken, localTokenIssuer } from "@tulle/identity/workload-token";
import { create } from "@bufbuild/protobuf";
import { type AdsResponse, connectAds, openByteStream } from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { testCertificate } from "../../../../tests/tools/certificates.ts";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import type { AuthorityStatus } from "@tulle/config/api";
import { maxStreamsPerPod } from "./own-configuration.ts";
import {
  ask,
  type Asked,
  forgedIdentity,
  type Identity,
  identityFrom,
  identityOfWeb,
  openStream,
  type ProvenWorld,
  provenWorld,
  serverName,
  tokenOf,
  web,
  webNode,
  webPod,
} from "../testing/proven-world.ts";

const hourMs = 3_600_000;
const other = { ...web, serviceAccount: "other" };

function trustBundle(response: AdsResponse | undefined): string | undefined {
  if (response?.type !== "SDS") return undefined;
  const type = response.resources.get("ROOTCA")?.type;
  if (type?.case !== "validationContext") return undefined;
  const specifier = type.value.trustedCa?.specifier;
  return specifier?.case === "inlineBytes" ? Buffer.from(specifier.value).toString() : undefined;
}

function certificatesIn(pem: string): number {
  const parsed = parseCertificates(pem);
  return parsed.ok ? parsed.certificates.length : 0;
}

test("a workload comes with a token, gets its certificate, and with it its configuration", async (context) => {
  const world = await provenWorld(context);
  const { answer, key } = await ask(world, { token: await tokenOf(world) });
  assert.ok(answer.ok, answer.ok ? "" : answer.details);
  assert.equal(answer.certChain.length, 3, "leaf, intermediate, root");
  const identity = identityFrom(answer.certChain, key);
  assert.equal(identity.rootsPem, await world.rootsPem());
  const parsed = parseCertificates(identity.certChainPem);
  assert.ok(parsed.ok);
  const [leaf] = parsed.certificates;
  assert.deepEqual(leaf!.names, [{ type: "uri", value: "spiffe://cluster.local/ns/shop/sa/web" }]);
  assert.ok(Math.abs(leaf!.notAfterMs - Date.now() - 24 * hourMs) < 60_000, "24 hours");

  const { responses } = await openStream(context, world, { identity });
  await waitFor(() => responses.length > 0, { what: "clusters" });
  assert.equal(responses[0]!.type, "CDS");

  const renewed = await ask(world, { identity, ttlMs: hourMs });
  assert.ok(renewed.answer.ok, "the certificate renews itself");
  const metrics = await world.metrics();
  assert.match(metrics, /^citadel_server_csr_count 2$/m);
  assert.match(metrics, /^citadel_server_success_cert_issuance_count 2$/m);
  assert.match(metrics, /^citadel_server_root_cert_expiry_timestamp \d{10}$/m);
  assert.match(metrics, /^citadel_server_cert_chain_expiry_seconds \d{9}$/m);
});

test("keys are for their owner, and the root for everyone", async (context) => {
  const { stateDirectory } = await provenWorld(context);
  const mode = async (file: string) => ((await stat(path.join(stateDirectory, file))).mode & 0o777).toString(8);
  assert.equal(await mode("ca/authority.json"), "600");
  assert.equal(await mode("workload-token-key.pem"), "600");
  assert.equal(await mode("ca/root-cert.pem"), "644");
  assert.doesNotMatch(await readFile(path.join(stateDirectory, "ca/root-cert.pem"), "utf8"), /PRIVATE/);
});

test("callers without a proof, or with one for something else, get no certificate", async (context) => {
  const world = await provenWorld(context);
  const mine = { namespace: "shop", serviceAccount: "web", pod: webPod };
  const strangersKey = await createWorkloadTokenKey();
  const rows: readonly { readonly name: string; readonly asked: Asked; readonly expected: string }[] = [
    {
      name: "neither token nor certificate",
      asked: {},
      expected: "UNAUTHENTICATED: neither a workload token nor a client certificate was shown",
    },
    {
      name: "an expired token",
      asked: { token: await tokenOf(world, { nowMs: Date.now() - 2 * hourMs }) },
      expected: "UNAUTHENTICATED: the workload token is refused: it has expired",
    },
    {
      name: "a token of tomorrow",
      asked: { token: await tokenOf(world, { nowMs: Date.now() + 24 * hourMs }) },
      expected: "UNAUTHENTICATED: the workload token is refused: it is not valid yet",
    },
    {
      name: "a token for another audience",
      asked: { token: await tokenOf(world, { audience: "catalog" }) },
      expected: "UNAUTHENTICATED: the workload token is refused: it is for another audience",
    },
    {
      name: "a token of another issuer",
      asked: { token: await tokenOf(world, { issuer: "https://elsewhere" }) },
      expected: "UNAUTHENTICATED: the workload token is refused: it is of another issuer",
    },
    {
      name: "a token signed with somebody's own key",
      asked: {
        token: await issueWorkloadToken(strangersKey, {
          identity: mine,
          issuer: localTokenIssuer,
          audience: "istio-ca",
          nowMs: Date.now(),
        }),
      },
      expected: "UNAUTHENTICATED: the workload token is refused: its key is none of the platform's",
    },
    {
      name: "no token at all",
      asked: { token: "letmein" },
      expected: "UNAUTHENTICATED: the workload token is refused: it is no signed JWT",
    },
    {
      name: "the token of a pod that is gone",
      asked: { token: await tokenOf(world, { identity: { ...mine, pod: { name: "web-0", uid: "x" } } }) },
      expected: "PERMISSION_DENIED: the token is of the pod web-0.shop, which is not known here",
    },
    {
      name: "the token of an earlier pod of the same name",
      asked: { token: await tokenOf(world, { identity: { ...mine, pod: { ...webPod, uid: "earlier" } } }) },
      expected: "PERMISSION_DENIED: the token is of the pod web-1.shop, which is not known here",
    },
    {
      name: "a token for another service account than the pod's",
      asked: { token: await tokenOf(world, { identity: { ...mine, serviceAccount: "other" } }), csrFor: other },
      expected: "PERMISSION_DENIED: the token is of the service account other, the pod web-1.shop runs under web",
    },
    {
      name: "a CSR for a foreign identity",
      asked: { token: await tokenOf(world), csrFor: other },
      expected:
        "PERMISSION_DENIED: the request is for spiffe://cluster.local/ns/shop/sa/other, the caller is spiffe://cluster.local/ns/shop/sa/web",
    },
    {
      name: "a certificate that would be renewed for somebody else",
      asked: { identity: await identityOfWeb(world), csrFor: other },
      expected:
        "PERMISSION_DENIED: the request is for spiffe://cluster.local/ns/shop/sa/other, the caller is spiffe://cluster.local/ns/shop/sa/web",
    },
    {
      name: "somebody's token over somebody else's connection",
      asked: { identity: await forgedIdentity(world, { identity: other }), token: await tokenOf(world) },
      expected:
        "UNAUTHENTICATED: the token is of spiffe://cluster.local/ns/shop/sa/web, the client certificate of spiffe://cluster.local/ns/shop/sa/other",
    },
    {
      name: "the certificate of an account without pods",
      asked: { identity: await forgedIdentity(world, { identity: { ...web, serviceAccount: "gone" } }) },
      expected: "PERMISSION_DENIED: no pod of the namespace shop runs under gone",
    },
    {
      name: "a life of a century",
      asked: { token: await tokenOf(world), ttlMs: 36_500 * 24 * hourMs },
      expected: "INVALID_ARGUMENT: a life of 3153600000 s was asked for, allowed is between one second and 7776000 s",
    },
    {
      name: "something that is no CSR",
      asked: { token: await tokenOf(world), csrPem: "please" },
      expected: "INVALID_ARGUMENT: the request is not readable: it is not exactly one block of PEM",
    },
  ];
  for (const { name, asked, expected } of rows) {
    const { answer } = await ask(world, asked);
    assert.equal(answer.ok ? "a certificate" : `${answer.status}: ${answer.details}`, expected, name);
  }
  const metrics = await world.metrics();
  assert.match(metrics, /^citadel_server_csr_sign_err_count\{error="foreign-identity"\} 2$/m);
  assert.match(metrics, /^citadel_server_authentication_failure_count 12$/m);
  assert.match(metrics, /^citadel_server_success_cert_issuance_count 1$/m);
  const audited = world.log.filter(({ message }) => message === "a certificate was refused");
  const kinds = new Set(audited.map(({ fields }) => fields?.["reason"]));
  assert.ok(kinds.size >= 4, "each kind of refusal is told at once");
  assert.deepEqual(audited.find(({ fields }) => fields?.["requested"] !== undefined)?.fields, {
    ...audited.find(({ fields }) => fields?.["requested"] !== undefined)?.fields,
    caller: "spiffe://cluster.local/ns/shop/sa/web",
    requested: "uri:spiffe://cluster.local/ns/shop/sa/other",
  });
  assert.ok(!world.log.some((entry) => JSON.stringify(entry).includes("eyJ")), "no token is in the log");
});

/** What a stranger makes at home: with the right name, and nobody behind it. */
async function selfSigned(): Promise<Identity> {
  const names = ["URI:spiffe://cluster.local/ns/shop/sa/web"];
  const { certificate, key } = await testCertificate({ commonName: "web", names });
  return { privateKeyPem: key, certChainPem: certificate };
}

async function ofAnotherAuthority(): Promise<Identity> {
  const signing = await createAuthority({ trustDomain: "cluster.local", nowMs: Date.now() });
  const authority = new CertificateAuthority({ trustDomain: "cluster.local", state: { phase: "steady", signing } });
  const key = await generateKey("P-256");
  const signed = authority.signWorkload({ csrPem: createCsr({ key, spiffeId: web }), identity: web });
  assert.ok(signed.ok);
  return { privateKeyPem: privateKeyPem(key), certChainPem: signed.chainPem };
}

test("certificates that are no good are refused at the door, counted and logged", async (context) => {
  const world = await provenWorld(context);
  const now = Date.now();
  const good = await forgedIdentity(world, {});
  const rows: readonly { readonly name: string; readonly identity: Identity; readonly reason: string }[] = [
    {
      name: "another trust domain under the same root",
      identity: await forgedIdentity(world, { identity: { ...web, trustDomain: "elsewhere" } }),
      reason: "wrong-trust-domain",
    },
    { name: "another authority", identity: await ofAnotherAuthority(), reason: "foreign-authority" },
    { name: "signed by itself", identity: await selfSigned(), reason: "self-signed" },
    {
      name: "expired",
      identity: await forgedIdentity(world, { nowMs: now - 60_000, ttlMs: 30_000 }),
      reason: "expired",
    },
    {
      name: "not yet valid",
      identity: await forgedIdentity(world, { nowMs: now + hourMs }),
      reason: "not-yet-valid",
    },
    {
      name: "without the intermediate",
      identity: {
        ...good,
        certChainPem: `${good.certChainPem.split("-----END CERTIFICATE-----\n")[0]}-----END CERTIFICATE-----\n`,
      },
      reason: "foreign-authority",
    },
  ];
  const refused = async (reason: string): Promise<number> => {
    const counter = new RegExp(`^tulle_xds_refused_connections_total\\{reason="${reason}"\\} (\\d+)`, "m");
    return Number(counter.exec(await world.metrics())?.[1] ?? 0);
  };
  for (const { name, identity, reason } of rows) {
    const before = await refused(reason);
    const { client, failures } = await openStream(context, world, { identity });
    await waitFor(() => failures.length > 0, { what: `the end of ${name}` });
    client.close();
    await waitFor(async () => (await refused(reason)) > before, { what: `the refusal of ${name} as ${reason}` });
    const { answer } = await ask(world, { identity });
    assert.ok(!answer.ok && answer.status === "UNAVAILABLE", `${name}: no renewal`);
  }
  // One line a second for each reason, since anybody can be refused as often as they like.
  const told = world.log.filter(({ message }) => message === "a connection was refused");
  assert.deepEqual(new Set(told.map(({ fields }) => fields?.["reason"])), new Set(rows.map(({ reason }) => reason)));
  const { responses } = await openStream(context, world, { identity: good });
  await waitFor(() => responses.length > 0, { what: "the good one's clusters" });
});

test("a workload gets its own pod's configuration, and nobody else's", async (context) => {
  const world = await provenWorld(context);
  const identity = await identityOfWeb(world);
  const caller = "spiffe://cluster.local/ns/shop/sa/web";
  const node = (pod: string) => `sidecar~127.9.9.1~${pod}~shop.svc.cluster.local`;
  const rows = [
    {
      name: "another namespace",
      nodeId: node("web-1.bank"),
      expected: `${caller} may not have the configuration of web-1.bank`,
    },
    {
      name: "another account of the namespace",
      nodeId: node("other-1.shop"),
      expected: `${caller} may not have the configuration of other-1.shop, which runs under other`,
    },
    { name: "a pod that is not there", nodeId: node("web-9.shop"), expected: "there is no pod web-9.shop" },
    {
      name: "a node without a pod",
      nodeId: "me",
      expected: 'node id "me" is not <type>~<address>~<pod>.<namespace>~<domain>',
    },
  ];
  for (const service of ["ads", "sds"] as const) {
    for (const { name, nodeId, expected } of rows) {
      const { client, failures, responses } = await openStream(context, world, {
        identity,
        nodeId,
        service,
        type: "SDS",
        names: new Set(["ROOTCA"]),
      });
      await waitFor(() => failures.length > 0, { what: `the end of ${name}` });
      client.close();
      assert.equal(failures[0], `7 PERMISSION_DENIED: ${expected}`, name);
      assert.deepEqual(responses, []);
    }
  }
  const { failures } = await openStream(context, world, {});
  await waitFor(() => failures.length > 0, { what: "the end of the one without a certificate" });
  assert.equal(failures[0], "7 PERMISSION_DENIED: this port serves workloads that show their certificate");
  const denied = world.log.filter(({ message }) => message === "a client was denied configuration");
  assert.equal(denied[0]?.fields?.["reason"], rows[0]!.expected);
  assert.ok(world.log.some(({ message }) => message === "a client was turned away"));
  assert.match(await world.metrics(), /^tulle_xds_denied_streams_total \d/m);
});

test("of too many streams of a pod the oldest makes way: a pod that left dead ones behind is served", async (context) => {
  const world = await provenWorld(context);
  const identity = await identityOfWeb(world);
  // The first of them of the bundle's service: all streams of a pod count together.
  const roots = { service: "sds", type: "SDS", names: new Set(["ROOTCA"]) } as const;
  const standing = [await openStream(context, world, { identity, ...roots })];
  await waitFor(() => standing[0]!.responses.length > 0, { what: "an answer on the first" });
  for (let open = 1; open < maxStreamsPerPod; open += 1) standing.push(await openStream(context, world, { identity }));
  await waitFor(() => standing.every(({ responses }) => responses.length > 0), { what: "an answer on each" });
  const neighbour = await openStream(context, world, {
    identity: await forgedIdentity(world, { identity: other }),
    nodeId: "sidecar~127.9.9.2~other-1.shop~shop.svc.cluster.local",
  });
  const [oldest, ...others] = standing;
  context.after(() => oldest!.client.close());
  const again = await openStream(context, world, { identity });
  await waitFor(() => again.responses.length > 0 && neighbour.responses.length > 0, { what: "answers to both" });
  await waitFor(() => oldest!.failures.length > 0, { what: "the end of the oldest" });
  oldest!.client.close();
  const told = `8 RESOURCE_EXHAUSTED: more than ${maxStreamsPerPod} streams of web-1.shop: the oldest makes way`;
  assert.equal(oldest!.failures[0], told);
  assert.deepEqual(neighbour.failures, [], "another pod's are left alone");
  assert.ok(others.some(({ failures }) => failures.length === 0));
});

test("one identity's streams that ask for nothing are bounded, and another identity is served beside them", async (context) => {
  const world = await provenWorld(context);
  const identity = await identityOfWeb(world);
  const rootsPem = await world.rootsPem();
  const ends: string[] = [];
  for (let count = 0; count < 3 * maxStreamsPerPod; count += 1) {
    const settled = Promise.withResolvers<void>();
    const onEnd = (reason: string): void => void ends.push(reason);
    const events = { onOpen: () => settled.resolve(), onMessage: () => undefined, onEnd };
    const stream = openByteStream(world.target, events, { tls: () => ({ rootsPem, serverName, identity }) });
    context.after(() => stream.close());
    await settled.promise;
  }
  const limit = "more than 16 streams of spiffe://cluster.local/ns/shop/sa/web";
  await waitFor(() => ends.length >= maxStreamsPerPod, { what: "the end of those beyond" });
  assert.deepEqual(
    ends,
    Array.from({ length: maxStreamsPerPod }, () => `8 RESOURCE_EXHAUSTED: ${limit}`),
  );
  const neighbour = await openStream(context, world, {
    identity: await forgedIdentity(world, { identity: other }),
    nodeId: "sidecar~127.9.9.2~other-1.shop~shop.svc.cluster.local",
  });
  await waitFor(() => neighbour.responses.length > 0, { what: "an answer to another workload" });
});

test("clients without a certificate make room for each other, and for who asks for one", async (context) => {
  const maxUnproven = 64;
  const world = await provenWorld(context, { xdsLimits: { maxUnproven } });
  const { port } = world.running.xdsTlsAddress!;
  const connect = async (): Promise<tls.TLSSocket> => {
    const socket = tls.connect({ host: "127.0.0.1", port, ALPNProtocols: ["h2"], rejectUnauthorized: false });
    context.after(() => socket.destroy());
    socket.on("error", () => undefined).resume();
    await once(socket, "secureConnect");
    return socket;
  };
  const idle: tls.TLSSocket[] = [];
  for (let batch = 0; batch < 5; batch += 1) idle.push(...(await Promise.all(Array.from({ length: 20 }, connect))));
  await waitFor(() => idle.filter(({ closed }) => closed).length === 100 - maxUnproven, {
    what: "the end of the oldest",
  });
  assert.ok(idle.slice(-40).every(({ closed }) => !closed));
  assert.match(await world.metrics(), /^tulle_xds_refused_connections_total\{reason="too-many-unproven"\} 36$/m);
  await openStream(context, world, { identity: await identityOfWeb(world) });
});

test("bad tokens and foreign nodes do not fill the log", async (context) => {
  const world = await provenWorld(context);
  const identity = await identityOfWeb(world);
  const count = 20;
  const startedMs = performance.now();
  for (let asked = 0; asked < count; asked += 1) {
    const { answer } = await ask(world, { token: `not.a.token-${asked}` });
    assert.equal(answer.ok ? "a certificate" : answer.status, "UNAUTHENTICATED");
    const { failures, client } = await openStream(context, world, {
      identity,
      nodeId: `sidecar~1.2.3.4~x-${asked}.bank~d`,
    });
    await waitFor(() => failures.length > 0, { what: "a refusal" });
    client.close();
  }
  const seconds = Math.ceil((performance.now() - startedMs) / 1000) + 1;
  for (const message of ["a certificate was refused", "a client was denied configuration"]) {
    const lines = world.log.filter((line) => line.message === message);
    assert.ok(lines.length > 0 && lines.length <= seconds, `${lines.length} lines of "${message}" in ${seconds} s`);
  }
});

test("connections that say nothing keep no workload out, and do not fill the log", async (context) => {
  const maxHandshakes = 64;
  const world = await provenWorld(context, { xdsLimits: { maxHandshakes } });
  const { port } = world.running.xdsTlsAddress!;
  const identity = await identityOfWeb(world);
  const silent = new Set<net.Socket>();
  context.after(() => silent.forEach((socket) => socket.destroy()));
  for (let count = 0; count < 4 * maxHandshakes; count += 1) {
    const socket = net.connect({ host: "127.0.0.1", port });
    silent.add(socket);
    socket.on("error", () => undefined).on("close", () => silent.delete(socket));
  }
  await waitFor(() => silent.size <= maxHandshakes, { what: "the end of the oldest" });
  const told = world.log.filter(({ fields }) => fields?.["reason"] === "handshake");
  assert.ok(told.length < maxHandshakes, `${told.length} lines`);
  assert.ok(
    !told.some(({ fields }) => /timeout/i.test(String(fields?.["detail"]))),
    "they made room before their time",
  );
  const { responses } = await openStream(context, world, { identity });
  await waitFor(() => responses.length > 0, { what: "a workload's clusters" });
});

test("the log says that a proxy came without a certificate to a mesh that has them", async (context) => {
  const world = await provenWorld(context, { xdsAddress: { host: "127.0.0.1", port: 0 } });
  const client = connectAds({
    target: `http://127.0.0.1:${world.running.xdsAddress!.port}`,
    node: create(NodeSchema, { id: webNode }),
    handlers: { onResponse: () => [], onState: () => undefined },
  });
  context.after(() => client.close());
  client.subscribe("CDS", "*");
  const lines = () => world.log.filter(({ message }) => message.startsWith("a proxy has no certificate"));
  const line = await waitFor(() => lines()[0], { what: "the line" });
  assert.deepEqual([line.level, line.fields?.["proxy"]], ["warning", "web-1.shop"]);
  await openStream(context, world, { identity: await identityOfWeb(world) });
  assert.equal(lines().length, 1);
});

test("a proven proxy's labels are those of its pod, whatever it says", async (context) => {
  const world = await provenWorld(context);
  const { responses } = await openStream(context, world, {
    identity: await identityOfWeb(world),
    labels: { app: "gateway" },
  });
  await waitFor(() => responses.length > 0, { what: "clusters" });
  const listening = await world.ask("/debug/connections");
  assert.deepEqual(
    (JSON.parse(listening.body) as readonly { readonly labels: unknown }[]).map(({ labels }) => labels),
    [{ app: "web" }],
  );
});

test("the operator begins a change of the root, and everyone hears of both", async (context) => {
  const world = await provenWorld(context);
  const before = await identityOfWeb(world);
  const roots = await openStream(context, world, {
    identity: before,
    service: "sds",
    type: "SDS",
    names: new Set(["ROOTCA"]),
  });
  const newestBundle = () => trustBundle(roots.responses.at(-1));
  await waitFor(() => newestBundle() === before.rootsPem, { what: "the first roots" });
  const post = { method: "POST" };
  const rotate = "/api/v1/ca/rotate-root";
  const open = `http://127.0.0.1:${world.running.httpAddress.port}${rotate}`;
  assert.equal((await fetch(open, post)).status, 403, "not in the clear");
  assert.equal((await world.ask(`${rotate}?introduceSeconds=soon`, post)).status, 400);
  const begun = await world.ask(rotate, post);
  assert.equal(begun.status, 200);
  const status = JSON.parse(begun.body) as AuthorityStatus;
  assert.equal(status.phase, "introducing");
  assert.ok(Math.abs(Date.parse(status.phaseEnds!) - Date.now() - 24 * hourMs) < 60_000, "a certificate's life");
  assert.equal(status.roots.length, 2);
  assert.deepEqual(JSON.parse((await world.ask("/api/v1/ca")).body), status);
  assert.equal((await world.ask(rotate, post)).status, 409, "one change at a time");

  await waitFor(() => certificatesIn(newestBundle() ?? "") === 2, { what: "both roots over SDS" });
  assert.equal(await world.rootsPem(), newestBundle());
  const meanwhile = await identityOfWeb(world);
  assert.equal(meanwhile.rootsPem, newestBundle());
  await openedBy(context, world, { ...meanwhile, rootsPem: before.rootsPem }, "whoever has heard nothing");
  assert.deepEqual(roots.failures, []);
});

test("streams end with their pod, and those of others go on", async (context) => {
  const world = await provenWorld(context);
  const identity = await identityOfWeb(world);
  const ads = await openStream(context, world, { identity });
  const sds = await openStream(context, world, {
    identity,
    service: "sds",
    type: "SDS",
    names: new Set(["ROOTCA"]),
  });
  const stranger = await forgedIdentity(world, { identity: other });
  const others = await openStream(context, world, {
    identity: stranger,
    nodeId: "sidecar~127.9.9.3~other-1.shop~shop.svc.cluster.local",
  });
  for (const { responses } of [ads, sds, others]) await waitFor(() => responses.length > 0, { what: "an answer" });
  await world.running.store.delete({ kind: "Pod", namespace: "shop", name: "web-1" });
  for (const { failures } of [ads, sds]) {
    await waitFor(() => failures.some((reason) => reason.includes("there is no pod web-1.shop")), {
      what: "the end of the stream",
      details: () => failures.join("; "),
    });
  }
  assert.deepEqual(others.failures, []);
});

async function openedBy(
  context: TestContext,
  world: ProvenWorld,
  identity: Identity & { readonly rootsPem: string },
  what: string,
): Promise<void> {
  const { client, responses } = await openStream(context, world, { identity, rootsPem: identity.rootsPem });
  await waitFor(() => responses.length > 0, { what });
  client.close();
}

test("a control plane that restarts keeps its authority, and its workloads their certificates", async (context) => {
  const stateDirectory = temporaryFolder("tulle-ca-");
  const first = await provenWorld(context, { stateDirectory });
  const identity = await identityOfWeb(first);
  const root = await first.rootsPem();
  await first.running.close();
  const second = await provenWorld(context, { stateDirectory });
  assert.equal(await second.rootsPem(), root);
  await openedBy(context, second, identity, "the certificate of before");
});

test("an authority that is brought along signs, and one that is no good stops the start", async (context) => {
  const stateDirectory = temporaryFolder("tulle-ca-");
  const cacertsDirectory = temporaryFolder("tulle-ca-");
  const folder = { stateDirectory, cacertsDirectory };
  await assert.rejects(
    provenWorld(context, folder),
    /certificate authority cannot be used: .*ca-cert\.pem: the file is missing/,
  );
  const brought = await createAuthority({ trustDomain: "cluster.local", nowMs: Date.now() });
  await writeCacerts(cacertsDirectory, brought);
  const world = await provenWorld(context, folder);
  assert.equal(await world.rootsPem(), brought.roots[0]!.pem);
  const identity = await identityOfWeb(world);
  await openedBy(context, world, identity, "a certificate of the authority that was brought along");
  const unchanged = await world.ask("/api/v1/ca/rotate-root", { method: "POST" });
  assert.equal(unchanged.status, 409);
  await writeCacerts(cacertsDirectory, await createAuthority({ trustDomain: "cluster.local", nowMs: Date.now() }));
  const changed = await world.ask("/api/v1/ca/rotate-root", { method: "POST" });
  assert.equal((JSON.parse(changed.body) as AuthorityStatus).phase, "introducing");
});

async function writeCacerts(folder: string, material: Awaited<ReturnType<typeof createAuthority>>): Promise<void> {
  const pem = (certificates: readonly { readonly pem: string }[]) => certificates.map((one) => one.pem).join("");
  await writeFile(path.join(folder, "ca-cert.pem"), material.certificate.pem);
  await writeFile(path.join(folder, "ca-key.pem"), privateKeyPem(material.key), { mode: 0o600 });
  await writeFile(path.join(folder, "root-cert.pem"), pem(material.roots));
  await writeFile(path.join(folder, "cert-chain.pem"), pem(material.chain));
}
