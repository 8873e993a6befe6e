// Random VirtualServices of every shape that the schema lets through, and the xDS that a sidecar and a gateway get from
// them.
import assert from "node:assert/strict";
import * as fc from "fast-check";
import { create } from "@bufbuild/protobuf";
import { MemoryStore, type MeshResource, parseResource } from "@tulle/config";
import {
  AcceptedResources,
  buildEndpoints,
  buildSnapshot,
  parseNode,
  type ProxyResources,
  scope,
  TranslationCache,
} from "@tulle/control-plane/stages";
import { type Node, NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";

const text = fc.oneof(fc.string({ maxLength: 12 }), fc.string({ unit: "binary", maxLength: 6 }));
const regex = fc.constantFrom("a+", ".*", "[^/]{1,20}", "(?i)x|y", "\\d{2,}", "^$", "a\\.b", "[a-z]{1000}");
const stringMatch = fc.oneof(
  fc.record({ exact: text }),
  fc.record({ prefix: text.filter((value) => value !== "") }),
  fc.record({ regex }),
);
const host = fc.constantFrom(
  "catalog",
  "CATALOG",
  "catalog.shop",
  "catalog.shop.svc.cluster.local",
  "*.example.com",
  "a.example.com",
  "192.0.2.1",
  "::1",
  "other.",
);
const durationText = fc.constantFrom("1ms", "1.5s", "2562047h");
const destination = fc.record({
  host: fc.constantFrom("catalog", "nowhere", "catalog.shop", "a.example.com"),
  subset: fc.option(fc.constantFrom("v1", "v2"), { nil: undefined }),
  port: fc.option(fc.record({ number: fc.integer({ min: 1, max: 65_535 }) }), { nil: undefined }),
});
const route = fc.record(
  {
    match: fc.array(
      fc.record(
        {
          uri: stringMatch,
          method: stringMatch,
          authority: stringMatch,
          headers: fc.dictionary(
            fc.constantFrom("x-a", "X-B", ":path", "!#$%&'*+-.^_`|~"),
            fc.oneof(stringMatch, fc.constant({})),
            {
              maxKeys: 2,
            },
          ),
          port: fc.constantFrom(80, 8080),
          scheme: stringMatch,
          ignoreUriCase: fc.boolean(),
          withoutHeaders: fc.dictionary(
            fc.constantFrom("x-a", "X-B", ":path", "@request.auth.claims[a]"),
            fc.oneof(stringMatch, fc.constant({}), fc.constant({ regex: "*" })),
            { maxKeys: 2 },
          ),
          queryParams: fc.dictionary(text, fc.oneof(stringMatch, fc.constant({})), { maxKeys: 2 }),
          gateways: fc.array(fc.constantFrom("mesh", "shop/gateway"), { maxLength: 2 }),
          sourceLabels: fc.constantFrom({ tulle: "ingressgateway" }, { app: "other" }),
          sourceNamespace: fc.constantFrom("shop", "other"),
        },
        { requiredKeys: [] },
      ),
      { maxLength: 3 },
    ),
    route: fc.array(
      fc.record({ destination, weight: fc.constantFrom(0, 1, 50, 2_147_483_647) }, { requiredKeys: ["destination"] }),
      { minLength: 1, maxLength: 4 },
    ),
    timeout: durationText,
    retries: fc.record({
      attempts: fc.constantFrom(1, 3, 2_147_483_647),
      perTryTimeout: durationText,
      retryOn: fc.constantFrom("5xx", "503,gateway-error", "", "cancelled,599"),
    }),
  },
  { requiredKeys: ["route"] },
);
const virtualService = fc.record({
  apiVersion: fc.constant("networking.tulle.io/v1"),
  kind: fc.constant("VirtualService"),
  metadata: fc.record({ name: fc.constantFrom("a", "b", "c"), namespace: fc.constantFrom("shop", "other") }),
  spec: fc.record(
    {
      hosts: fc.array(host, { minLength: 1, maxLength: 4 }),
      gateways: fc.array(fc.constantFrom("mesh", "shop/gateway"), { maxLength: 2 }),
      http: fc.array(route, { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: ["hosts", "http"] },
  ),
});

const fixed: readonly unknown[] = [
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "catalog", namespace: "shop" },
    spec: { selector: { app: "catalog" }, ports: [{ name: "http", port: 80 }] },
  },
  {
    apiVersion: "networking.tulle.io/v1",
    kind: "Gateway",
    metadata: { name: "gateway", namespace: "shop" },
    spec: {
      selector: { tulle: "ingressgateway" },
      servers: [{ port: { number: 8080, name: "http", protocol: "HTTP" }, hosts: ["*", "*.example.com"] }],
    },
  },
];
const nodes = [
  "sidecar~127.9.9.1~web-1.shop~shop.svc.cluster.local",
  "router~127.9.9.2~gateway-1.shop~shop.svc.cluster.local",
].map((id) => create(NodeSchema, { id, metadata: { INTERCEPTION_MODE: "NONE", LABELS: { tulle: "ingressgateway" } } }));

/** Documents of some VirtualServices, most of them valid. */
export const randomVirtualServices = fc.array(virtualService, { minLength: 1, maxLength: 4 });

export interface RandomTables {
  /** VirtualServices that were neither invalid nor set aside. */
  readonly routed: number;
  /** What each proxy gets. */
  readonly proxies: readonly ProxyResources[];
}

export async function tablesOf(documents: readonly unknown[]): Promise<RandomTables> {
  return tablesFor([...fixed, ...documents], nodes);
}

/** What each of `proxyNodes` gets of a mesh that is made of the documents. */
export async function tablesFor(documents: readonly unknown[], proxyNodes: readonly Node[]): Promise<RandomTables> {
  const parsed = documents.map((document) => parseResource(document));
  const store = new MemoryStore();
  await store.applyAll(
    parsed.flatMap(({ resource }): readonly MeshResource[] => (resource === undefined ? [] : [resource])),
  );
  const accepted = new AcceptedResources(store);
  accepted.refresh();
  const snapshot = buildSnapshot(accepted);
  const endpoints = buildEndpoints(accepted, snapshot);
  const proxies = proxyNodes.map((node) => {
    const parsedNode = parseNode(node);
    assert.ok("proxy" in parsedNode);
    return new TranslationCache("local").resources(scope(snapshot, parsedNode.proxy, endpoints), endpoints);
  });
  return { routed: snapshot.virtualServices.length, proxies };
}
