// Secrets over ADS and over the HTTP API: which gateway gets which, that a new one is sent alone, and that nobody else
// sees a value.
import assert from "node:assert/strict";
import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { before, test, type TestContext } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ApiClient, parseResource } from "@tulle/config";
import { type AdsResponse, connectAds } from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { testCertificate, type TestCertificate } from "../../../../tests/tools/certificates.ts";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { identityOfWeb, openStream, type ProvenWorld, provenWorld, type TestStream } from "../testing/proven-world.ts";

const gatewayNode = "router~127.9.9.1~web-1.shop~shop.svc.cluster.local";
const names = new Set([
  "kubernetes://site",
  "kubernetes://site-cacert",
  "kubernetes://bank/vault",
  "kubernetes://late",
]);

let first: TestCertificate;
let second: TestCertificate;
let authority: TestCertificate;

before(async () => {
  [first, second, authority] = await Promise.all([
    testCertificate({ commonName: "first" }),
    testCertificate({ commonName: "second" }),
    testCertificate({ commonName: "authority", isAuthority: true }),
  ]);
});

async function applySecret(
  { running }: ProvenWorld,
  namespace: string,
  name: string,
  stringData: Readonly<Record<string, string>>,
): Promise<void> {
  const { resource, findings } = parseResource({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace, name },
    stringData,
  });
  assert.ok(resource, JSON.stringify(findings));
  await running.store.apply(resource);
}

const pair = ({ certificate, key }: TestCertificate): Record<string, string> => ({
  "tls.crt": certificate,
  "tls.key": key,
});

/** Chooses the pod `web-1` for the gateway that it says it is. */
async function applyGateway({ running }: ProvenWorld): Promise<void> {
  const { resource, findings } = parseResource({
    apiVersion: "networking.tulle.io/v1",
    kind: "Gateway",
    metadata: { namespace: "shop", name: "site" },
    spec: {
      selector: { app: "web" },
      servers: [
        {
          port: { number: 443, name: "https", protocol: "HTTPS" },
          hosts: ["*"],
          tls: { mode: "SIMPLE", credentialName: "site" },
        },
      ],
    },
  });
  assert.ok(resource, JSON.stringify(findings));
  await running.store.apply(resource);
}

/** What the stream was sent, newest value of each name. */
function received({ responses }: TestStream): Record<string, string> {
  const found: Record<string, string> = {};
  for (const response of responses) {
    if (response.type !== "SDS") continue;
    for (const [name, { type }] of response.resources) {
      const source = type.case === "tlsCertificate" ? type.value.certificateChain : undefined;
      const trusted = type.case === "validationContext" ? type.value.trustedCa : undefined;
      const specifier = (source ?? trusted)?.specifier;
      found[name] = specifier?.case === "inlineBytes" ? Buffer.from(specifier.value).toString() : "?";
    }
  }
  return found;
}

test("a gateway gets the Secrets of its own namespace, and a new certificate alone", async (context) => {
  const world = await provenWorld(context);
  const { rootsPem: _roots, ...identity } = await identityOfWeb(world);
  await applySecret(world, "shop", "site", { ...pair(first), "ca.crt": authority.certificate });
  await applySecret(world, "bank", "vault", pair(second));
  await applyGateway(world);
  const stream = await openStream(context, world, { identity, nodeId: gatewayNode, type: "SDS", names });
  stream.client.subscribe("CDS", "*");
  await waitFor(
    () => Object.keys(received(stream)).length === 2 && stream.responses.some(({ type }) => type === "CDS"),
    {
      what: "two secrets and the clusters",
    },
  );
  assert.deepEqual(received(stream), {
    "kubernetes://site": first.certificate,
    "kubernetes://site-cacert": authority.certificate,
  });

  stream.responses.length = 0;
  await applySecret(world, "shop", "site", { ...pair(second), "ca.crt": authority.certificate });
  await waitFor(() => received(stream)["kubernetes://site"] === second.certificate, { what: "the new certificate" });
  assert.deepEqual(Object.keys(received(stream)), ["kubernetes://site"], "the authorities are the same");

  await applySecret(world, "shop", "late", pair(first));
  await waitFor(() => received(stream)["kubernetes://late"] === first.certificate, { what: "a Secret that came late" });
  await applySecret(world, "shop", "site-cacert", { cacert: first.certificate });
  await waitFor(() => received(stream)["kubernetes://site-cacert"] === first.certificate, {
    what: "authorities in a Secret of their own",
  });
  assert.deepEqual([...new Set(stream.responses.map(({ type }) => type))], ["SDS"], "nothing else is sent again");
});

test("a pod that only says that it is a gateway gets none, until a Gateway chooses it", async (context) => {
  const world = await provenWorld(context);
  const { rootsPem: _roots, ...identity } = await identityOfWeb(world);
  await applySecret(world, "shop", "site", pair(first));
  const stream = await openStream(context, world, { identity, nodeId: gatewayNode, type: "SDS", names });
  await waitFor(() => isTold(world, /no Gateway has chosen/), { what: "the refusal in the log" });
  assert.deepEqual(received(stream), {});
  await applyGateway(world);
  await waitFor(() => received(stream)["kubernetes://site"] === first.certificate, { what: "the certificate" });
});

test("a sidecar gets none, and a gateway that has shown no certificate neither", async (context) => {
  const world = await provenWorld(context, { xdsAddress: { host: "127.0.0.1", port: 0 } });
  const { rootsPem: _roots, ...identity } = await identityOfWeb(world);
  await applySecret(world, "shop", "site", pair(first));
  await applyGateway(world);
  const streams = [await openStream(context, world, { identity, type: "SDS", names }), openPlainStream(context, world)];
  for (const reason of [/it is no gateway/, /it has shown no certificate/]) {
    await waitFor(() => isTold(world, reason), { what: String(reason) });
  }
  for (const stream of streams) {
    stream.client.subscribe("CDS", "*");
    await waitFor(() => stream.responses.some(({ type }) => type === "CDS"), { what: "clusters" });
    assert.deepEqual(received(stream), {});
  }
});

/** To the port without TLS. */
function openPlainStream(context: TestContext, { running }: ProvenWorld): TestStream {
  const responses: AdsResponse[] = [];
  const client = connectAds({
    target: `http://127.0.0.1:${running.xdsAddress!.port}`,
    node: create(NodeSchema, { id: gatewayNode, metadata: { LABELS: { app: "web" } } }),
    handlers: {
      onResponse: (response) => {
        responses.push(response);
        return [];
      },
    },
  });
  context.after(() => client.close());
  client.subscribe("SDS", names);
  return { client, responses, failures: [] };
}

function isTold({ log }: ProvenWorld, reason: RegExp): boolean {
  return log.some((entry) => reason.test(JSON.stringify(entry)));
}

test("a Secret's values are for the owner alone, and in no debug page", async (context) => {
  const world = await provenWorld(context);
  const url = `http://127.0.0.1:${world.running.httpAddress.port}`;
  const owner = new ApiClient({ endpoint: { socketPath: world.running.socketPath } });
  const manifest = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "site", namespace: "shop" },
    type: "kubernetes.io/tls",
    stringData: pair(first),
  };
  const { resource } = parseResource(manifest);
  assert.ok(resource);
  await owner.apply(resource);
  const keyLines = first.key.split("\n").filter((line) => line.length > 30);
  const hidesKey = (text: string): boolean =>
    keyLines.every((line) => !text.includes(line)) && !text.includes(Buffer.from(first.key).toString("base64"));
  const object = "/api/v1/resources/Secret/shop/site";
  for (const page of ["/api/v1/resources/Secret", object, "/api/v1/watch?kinds=Secret", "/debug/configz"]) {
    const answer = await fetch(url + page);
    assert.equal(answer.status, 403, page);
    assert.ok(hidesKey(await answer.text()), page);
  }
  const dump = (await world.ask("/debug/configz")).body;
  assert.ok(hidesKey(dump));
  assert.match(dump, /"tls.key":"\(hidden\)"/);
  assert.ok(hidesKey(JSON.stringify(world.log)));
  assert.match((await world.ask(object)).body, /BEGIN PRIVATE KEY/, "its owner sees it");

  const folder = path.join(world.stateDirectory, "applied");
  const [file] = (await readdir(folder)).filter((name) => name.includes("Secret"));
  assert.equal((await stat(path.join(folder, file!))).mode & 0o777, 0o600);

  const mismatch = { ...manifest, stringData: { ...pair(first), "tls.key": second.key } };
  const answer = await world.ask(object, { method: "PUT", body: JSON.stringify(mismatch) });
  assert.equal(answer.status, 422);
  const text = answer.body;
  assert.match(text, /does not belong to the first certificate/);
  assert.doesNotMatch(text, /BEGIN|MI[GI]/);
});
