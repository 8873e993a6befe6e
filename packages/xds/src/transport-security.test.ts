// The gRPC transport over TLS: who may connect, what a call sees of its client, and credentials that change under live
// streams.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { create } from "@bufbuild/protobuf";
import { waitFor } from "../../../tests/tools/processes.ts";
import { type TestAuthority, testAuthority } from "../../../tests/tools/certificates.ts";
import { connectAds } from "./ads-client.ts";
import { type AdsServerOptions, serveAds } from "./index.ts";
import { type CertificateCall, certificateService, createCertificate } from "./certificate-service.ts";
import { encodeResource } from "./encoded-resource.ts";
import { NodeSchema } from "./generated/envoy/config/core/v3/base_pb.ts";
import { SecretSchema } from "./generated/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import type { ClientTls, RefusedClient } from "./transport-security.ts";

const serverName = "tulled.tulle-system.svc";
const web = { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "web" };
const webUri = "URI:spiffe://cluster.local/ns/shop/sa/web";

const secret = (name: string) =>
  encodeResource(
    SecretSchema,
    create(SecretSchema, { name, type: { case: "genericSecret", value: { secret: undefined } } }),
  );

async function startServer(context: TestContext, authority: TestAuthority, options: Partial<AdsServerOptions> = {}) {
  const refused: RefusedClient[] = [];
  const chains: number[] = [];
  const validity = { untilMs: Date.now() + 3_600_000 };
  const credentials = { ...(await authority.leaf(`DNS:${serverName}`)), clientRootsPem: authority.rootPem };
  const server = await serveAds({
    address: { host: "127.0.0.1", port: 0 },
    handlers: {
      onConnect: () => undefined,
      onSubscribe: (connection) => connection.set("SDS", new Map([["default", secret("default")]])),
      onDisconnect: () => undefined,
    },
    tls: {
      credentials,
      verifyClient: (chain) => {
        chains.push(chain.length);
        const leaf = new X509Certificate(chain[0]!);
        return leaf.subjectAltName === webUri
          ? { ok: true, identity: web, validUntilMs: validity.untilMs }
          : { ok: false, reason: "foreign", message: `not web: ${leaf.subjectAltName}` };
      },
      onRefused: (one) => refused.push(one),
    },
    ...options,
  });
  context.after(() => server.close());
  assert.ok("port" in server.address);
  return { server, refused, chains, validity, port: server.address.port };
}

function startClient(
  context: TestContext,
  port: number,
  tls: () => ClientTls,
  options: { readonly service?: "ads" | "sds" } = {},
) {
  const received: string[] = [];
  const failures: string[] = [];
  const client = connectAds({
    target: `https://127.0.0.1:${port}`,
    node: create(NodeSchema, { id: "sidecar~127.0.0.1~web.shop~shop.svc.cluster.local" }),
    handlers: {
      onResponse: (response) => {
        received.push(...response.resources.keys());
        return [];
      },
      onState: (state) => {
        if (state.kind === "waiting") failures.push(state.reason);
      },
    },
    backOff: { baseMs: 20, maxMs: 100 },
    tls,
    ...options,
  });
  context.after(() => client.close());
  client.subscribe("SDS", new Set(["default"]));
  return { client, received, failures };
}

for (const service of ["ads", "sds"] as const) {
  test(`a client with a certificate is served ${service}, and known by it`, async (context) => {
    const authority = await testAuthority();
    const { server, port, chains } = await startServer(context, authority, { service });
    const identity = await authority.leaf(webUri);
    const { received } = startClient(context, port, () => ({ rootsPem: authority.rootPem, serverName, identity }), {
      service,
    });
    await waitFor(() => received.includes("default"), { what: "the secret" });
    assert.deepEqual(server.connections[0]?.peerIdentity, web);
    // The chain as it was sent, and the root where OpenSSL found it.
    assert.ok(chains[0]! >= 2, `${chains[0]} certificates`);
  });
}

test("clients that are turned away, each with words on both sides", async (context) => {
  const authority = await testAuthority();
  const other = await testAuthority();
  const { refused, port } = await startServer(context, authority, {
    refusal: ({ node, peerIdentity }) =>
      `${node.id.split("~")[2]} is not of ${peerIdentity?.serviceAccount ?? "nobody"}`,
    handlers: {
      onConnect: () => assert.fail("nobody is let in"),
      onSubscribe: () => undefined,
      onDisconnect: () => undefined,
    },
  });
  const cases: readonly {
    readonly name: string;
    readonly tls: ClientTls;
    readonly client: RegExp;
    readonly server?: string;
  }[] = [
    {
      name: "no certificate",
      tls: { rootsPem: authority.rootPem, serverName },
      client: /^7 PERMISSION_DENIED: web\.shop is not of nobody$/,
    },
    {
      name: "a certificate that is good, for another pod",
      tls: { rootsPem: authority.rootPem, serverName, identity: await authority.leaf(webUri) },
      client: /^7 PERMISSION_DENIED: web\.shop is not of web$/,
    },
    {
      name: "a certificate that is refused",
      tls: { rootsPem: authority.rootPem, serverName, identity: await authority.leaf("URI:spiffe://other/ns/a/sa/b") },
      client: /./,
      server: "foreign: not web: URI:spiffe://other/ns/a/sa/b",
    },
    {
      name: "a client that does not trust the server",
      tls: { rootsPem: other.rootPem, serverName },
      client: /^cannot connect to https:.*certificate/,
    },
    {
      name: "a client that looks for another server",
      tls: { rootsPem: authority.rootPem, serverName: "istiod.istio-system.svc" },
      client: /^cannot connect to https:.*Host: istiod\.istio-system\.svc/,
    },
  ];
  for (const { name, tls, client, server } of cases) {
    refused.length = 0;
    const { failures, client: running } = startClient(context, port, () => tls);
    await waitFor(() => failures.length > 0, { what: `the end of ${name}` });
    running.close();
    assert.match(failures[0]!, client, name);
    if (server === undefined) continue;
    await waitFor(() => refused.length > 0, { what: `the refusal of ${name}` });
    assert.equal(`${refused[0]!.reason}: ${refused[0]!.message}`, server);
  }
});

test("TLS 1.2 and a client without HTTP/2 are refused", async (context) => {
  const authority = await testAuthority();
  const { refused, port } = await startServer(context, authority);
  const cases = [
    { name: "TLS 1.2", options: { maxVersion: "TLSv1.2", ALPNProtocols: ["h2"] }, reason: "handshake" },
    { name: "no ALPN", options: {}, reason: "no-http2" },
  ] as const;
  for (const { name, options, reason } of cases) {
    refused.length = 0;
    const socket = connectTls({ port, ca: authority.rootPem, servername: serverName, ...options });
    socket.on("error", () => undefined);
    context.after(() => socket.destroy());
    await waitFor(() => refused.length > 0, { what: `the refusal of ${name}` });
    assert.equal(refused[0]!.reason, reason, name);
  }
});

test("credentials change on both sides, and the stream goes on", async (context) => {
  const before = await testAuthority();
  const after = await testAuthority();
  const roots = before.rootPem + after.rootPem;
  const { server, port } = await startServer(context, before);
  const earlier = await before.leaf(webUri);
  const { received } = startClient(context, port, () => ({ rootsPem: roots, serverName, identity: earlier }));
  await waitFor(() => received.length === 1, { what: "the first secret" });
  const [connection] = server.connections;
  server.setCredentials({ ...(await after.leaf(`DNS:${serverName}`)), clientRootsPem: roots });

  const identity = await after.leaf(webUri);
  const second = startClient(context, port, () => ({ rootsPem: after.rootPem, serverName, identity }));
  await waitFor(() => second.received.length === 1, { what: "a client that knows the new root alone" });
  assert.equal(server.connections[0], connection);
  connection!.set("SDS", new Map([["default", { ...secret("default"), version: "changed" }]]));
  await waitFor(() => received.length === 2, { what: "a change on the old stream" });

  const wrong = { ...(await after.leaf("DNS:a")), certChainPem: (await after.leaf("DNS:b")).certChainPem };
  assert.throws(() => server.setCredentials({ ...wrong, clientRootsPem: roots }), /key values mismatch/i);
});

test("a connection ends with the certificate that opened it, and the client comes again", async (context) => {
  const authority = await testAuthority();
  const { server, port, validity } = await startServer(context, authority);
  validity.untilMs = Date.now() + 200;
  const identity = await authority.leaf(webUri);
  let connections = 0;
  const { received, failures } = startClient(context, port, () => {
    connections += 1;
    if (connections === 2) validity.untilMs = Date.now() + 3_600_000;
    return { rootsPem: authority.rootPem, serverName, identity };
  });
  await waitFor(() => connections === 2 && received.length >= 1, { what: "the second connection" });
  await waitFor(() => server.connections.length === 1, { what: "the second stream" });
  assert.equal(failures.length, 1);
});

test("a certificate request is answered beside the streams, with or without a client certificate", async (context) => {
  const authority = await testAuthority();
  const calls: CertificateCall[] = [];
  const { port } = await startServer(context, authority, {
    unaryHandlers: certificateService(async (call) => {
      calls.push(call);
      if (call.csrPem === "broken") throw new Error("secret detail");
      return call.bearerToken === undefined && call.peerIdentity === undefined
        ? { ok: false, status: "UNAUTHENTICATED", details: "who are you?" }
        : { ok: true, certChain: ["leaf", "root"] };
    }),
  });
  const target = `https://127.0.0.1:${port}`;
  const anonymous = () => ({ rootsPem: authority.rootPem, serverName });
  const identity = await authority.leaf(webUri);
  const known = () => ({ ...anonymous(), identity });
  const signed = { ok: true, certChain: ["leaf", "root"] };
  const cases = [
    { request: { tls: anonymous, csrPem: "a", bearerToken: "x.y.z", ttlMs: 20_000 }, expected: signed },
    { request: { tls: known, csrPem: "b" }, expected: signed },
    {
      request: { tls: anonymous, csrPem: "c" },
      expected: { ok: false, status: "UNAUTHENTICATED", details: "who are you?" },
    },
    {
      request: { tls: anonymous, csrPem: "broken" },
      expected: { ok: false, status: "INTERNAL", details: "the server failed" },
    },
  ];
  for (const { request, expected } of cases) {
    assert.deepEqual(await createCertificate({ target, ...request }), expected, request.csrPem);
  }
  const seen = calls.map(({ bearerToken, ttlMs, peerIdentity, peerCertificates }) => ({
    bearerToken,
    ttlMs,
    serviceAccount: peerIdentity?.serviceAccount,
    showsCertificate: peerCertificates.length > 0,
  }));
  const nothing = { bearerToken: undefined, ttlMs: undefined, serviceAccount: undefined, showsCertificate: false };
  assert.deepEqual(seen, [
    { ...nothing, bearerToken: "x.y.z", ttlMs: 20_000 },
    { ...nothing, serviceAccount: "web", showsCertificate: true },
    nothing,
    nothing,
  ]);
});

test("an authority that is not there is an answer", async () => {
  const answer = await createCertificate({
    target: "https://127.0.0.1:1",
    tls: () => ({ rootsPem: "", serverName }),
    csrPem: "",
    timeoutMs: 30_000,
  });
  assert.ok(!answer.ok);
  assert.equal(answer.status, "UNAVAILABLE");
});
