// What a cache has kept never stands in for something newer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText, MemoryStore } from "@tulle/config";
import { create } from "@bufbuild/protobuf";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { Keyed } from "../scope/keyed.ts";
import { parseNode, type Proxy } from "../scope/proxy.ts";
import { scope } from "../scope/scope.ts";
import type { DiscoveredEndpoints } from "../snapshot/browser-logins.ts";
import { buildEndpoints } from "../snapshot/build-endpoints.ts";
import { buildSnapshot } from "../snapshot/build-snapshot.ts";
import { TranslationCache } from "./translation-cache.ts";

const issuer = "https://login.example.com";
const signIn = `
apiVersion: networking.tulle.io/v1
kind: Gateway
metadata: { name: public, namespace: shop }
spec:
  selector: { tulle: ingressgateway }
  servers: [{ port: { number: 8080, name: http, protocol: HTTP }, hosts: ["*"] }]
---
apiVersion: security.tulle.io/v1alpha1
kind: BrowserLogin
metadata: { name: account, namespace: shop }
spec:
  gateways: [public]
  provider: { issuer: "${issuer}" }
  clientID: gateway
  redirectPath: /signed-in
  logoutPath: /sign-out
`;

function gateway(): Proxy {
  const id = "router~127.9.9.9~gateway-1.shop~shop.svc.cluster.local";
  const parsed = parseNode(create(NodeSchema, { id, metadata: { LABELS: { tulle: "ingressgateway" } } }));
  assert.ok("proxy" in parsed);
  return parsed.proxy;
}

test("a provider outside the mesh that is found later gets its cluster, and one that moves another", async () => {
  const { resources, findings } = loadText(signIn, "input.yaml");
  assert.deepEqual(findings, []);
  const store = new MemoryStore();
  await store.applyAll(resources);
  const cache = new TranslationCache("local");
  const clusters = (discoveredEndpoints: DiscoveredEndpoints): readonly string[] => {
    const snapshot = buildSnapshot(store, { discoveredEndpoints });
    const endpoints = buildEndpoints(store, snapshot);
    return [...cache.resources(scope(snapshot, gateway(), endpoints), endpoints).CDS.keys()];
  };
  const at = (host: string): DiscoveredEndpoints =>
    new Map([[issuer, { authorizationEndpoint: `https://${host}/a`, tokenEndpoint: `https://${host}/token` }]]);
  assert.deepEqual(clusters(new Map()), ["BlackHoleCluster"]);
  assert.deepEqual(clusters(at("one.example.com")), ["BlackHoleCluster", "browser-login|https://one.example.com"]);
  assert.deepEqual(clusters(at("two.example.com")), ["BlackHoleCluster", "browser-login|https://two.example.com"]);
  assert.deepEqual(clusters(new Map()), ["BlackHoleCluster"]);
});

test("a key is of data that its text tells apart, and the compiler refuses other content", () => {
  assert.notEqual(Keyed.of({ names: ["a"] }).key, Keyed.of({ names: ["b"] }).key);
  assert.equal(Keyed.of({ names: ["a"] }).key, Keyed.of({ names: ["a"] }).key);
  // @ts-expect-error A Map's content is not in its JSON text.
  Keyed.of({ names: new Map([["a", 1]]) });
  // @ts-expect-error Nor is what a function does.
  Keyed.of({ isNamed: () => true });
  // @ts-expect-error A key is made of the content, and by nobody else.
  const forged: Keyed<string> = { key: "a", value: "b" };
  assert.ok(!(forged instanceof Keyed));
});
