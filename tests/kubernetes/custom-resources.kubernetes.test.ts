// The mesh's kinds on a real API server: it takes their definitions, the shop's own manifests, and what Istio's users
// write; it refuses what the schemas refuse; and Secrets that a Gateway names are read.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { before, test } from "node:test";
import { kindDefinitions } from "@tulle/config";
import { customResourceDefinitions } from "@tulle/kubernetes";
import { parseAllDocuments } from "yaml";
import { applyObjects, deleteNamespace, kubectl } from "../tools/cluster/kubectl.ts";

const shop = path.resolve(import.meta.dirname, "../../samples/shop");
const definitions = customResourceDefinitions();

before(async () => {
  await applyObjects(definitions);
  const names = definitions.map(({ metadata }) => `crd/${metadata.name}`);
  await kubectl(["wait", ...names, "--for=condition=Established", "--timeout=60s"]);
});

test("each definition is taken as it stands: its schema is structural", async () => {
  const { items } = JSON.parse(
    await kubectl(["get", "crd", "-o", "json", "-l", "app.kubernetes.io/part-of=tulle"]),
  ) as {
    readonly items: readonly {
      readonly metadata: { readonly name: string };
      readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string }[] };
    }[];
  };
  assert.equal(items.length, definitions.length);
  for (const { metadata, status } of items) {
    const wrong = status.conditions.filter(({ type }) => /NonStructural|Violat|Terminating/.test(type));
    assert.deepEqual(wrong, [], metadata.name);
  }
});

test("the shop's manifests are taken, with no field that the API server does not know", async () => {
  const namespaces = path.join(shop, "0-namespaces.yaml");
  await kubectl(["apply", "-f", namespaces]);
  // The gateway's, which comes with the mesh.
  await kubectl(["create", "namespace", "tulle-system"]);
  const files = (await readdir(shop, { recursive: true })).filter((file) => file.endsWith(".yaml"));
  assert.ok(files.length > 10);
  for (const file of files) {
    const args = ["apply", "--dry-run=server", "--validate=strict", "-f", path.join(shop, file)];
    await assert.doesNotReject(kubectl(args), file);
  }
  for (const name of ["shop", "tulle-system"]) await deleteNamespace(name);
});

test("every version that Istio has is served in our groups", async () => {
  const served = JSON.parse(await kubectl(["get", "--raw", "/apis/networking.tulle.io"])) as {
    readonly versions: readonly { readonly version: string }[];
  };
  assert.deepEqual(served.versions.map(({ version }) => version).sort(), ["v1", "v1alpha3", "v1beta1"]);
  assert.ok(kindDefinitions.VirtualService.apiVersions.includes("networking.tulle.io/v1beta1"));
});

/** A definition that is new is not in the API's description yet: then kubectl itself refuses, in words of its own. */
const refused: readonly { readonly name: string; readonly text: string; readonly says: RegExp }[] = [
  {
    name: "a weight that is no number",
    text: `{apiVersion: networking.tulle.io/v1, kind: VirtualService, metadata: {name: a},
            spec: {hosts: [a], http: [{route: [{destination: {host: a}, weight: many}]}]}}`,
    says: /spec\.http\[0\]\.route\[0\]\.weight\W+(?:Invalid value: "string"|invalid type)/,
  },
  {
    name: "a field that nobody knows",
    text: `{apiVersion: networking.tulle.io/v1, kind: DestinationRule, metadata: {name: a},
            spec: {host: a, trafficPolice: {}}}`,
    says: /unknown field "(?:spec\.)?trafficPolice"/,
  },
  {
    name: "a mode that there is not",
    text: `{apiVersion: security.tulle.io/v1, kind: PeerAuthentication, metadata: {name: a},
            spec: {mtls: {mode: STRICTER}}}`,
    says: /spec\.mtls\.mode: Unsupported value: "STRICTER"/,
  },
];

for (const { name, text, says } of refused) {
  test(`the API server refuses ${name}`, async () => {
    await assert.rejects(applyObjects(parseAllDocuments(text).map((each) => each.toJS() as object)), { message: says });
  });
}

test("a protocol of a port is taken in any case, as Istio takes it", async () => {
  const gateway = (protocol: string): object => ({
    apiVersion: "networking.tulle.io/v1beta1",
    kind: "Gateway",
    metadata: { name: `by-${protocol.toLowerCase()}`, namespace: "default" },
    spec: { selector: { app: "a" }, servers: [{ port: { number: 80, name: "http", protocol }, hosts: ["*"] }] },
  });
  await applyObjects([gateway("HTTP")]);
  await kubectl(["delete", "gateways.networking.tulle.io", "--all"]);
  await applyObjects([gateway("http")]);
  await kubectl(["delete", "gateways.networking.tulle.io", "--all"]);
});
