/** One slip in one document: what else is wrong with it is still told, and nothing that refers to it looks lost. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { analyze } from "../analyzers/analyze.ts";
import { loadText } from "../load/load.ts";
import { renderFinding } from "../findings/render-finding.ts";

const service = (ports: string): string =>
  `{ apiVersion: v1, kind: Service, metadata: { name: catalog, namespace: shop }, spec: { ports: ${ports} } }`;
const rule = (spec: string, kind = "DestinationRule"): string =>
  `{ apiVersion: networking.istio.io/v1, kind: ${kind}, metadata: { name: catalog, namespace: shop }, spec: ${spec} }`;
const gateway = (kind: string, hosts: string): string =>
  `{ apiVersion: networking.istio.io/v1, kind: ${kind}, metadata: { name: public, namespace: shop }, spec: { servers: [{ port: { number: 80, name: http, protocol: HTTP }, hosts: ${hosts} }] } }`;
const routes = (spec: string): string =>
  `{ apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: { name: routes, namespace: shop }, spec: ${spec} }`;

const good = {
  service: service("[{ name: http, port: 80 }]"),
  rule: rule("{ host: catalog, subsets: [{ name: v1 }] }"),
  gateway: gateway("Gateway", "[shop.example.com]"),
  routes: routes(
    "{ hosts: [shop.example.com], gateways: [public], http: [{ route: [{ destination: { host: catalog, subset: v1, port: { number: 80 } } }] }] }",
  ),
};

const cases: readonly {
  readonly name: string;
  readonly input: Partial<typeof good>;
  readonly expected: readonly string[];
}[] = [
  { name: "all is well", input: {}, expected: [] },
  {
    name: "a Service with a port that is none",
    input: { service: service("[{ name: http, port: http }]") },
    expected: ['Error [IST0106] (Service shop/catalog) expected a whole number, found the text "http"'],
  },
  {
    name: "a DestinationRule with a misspelt field",
    input: { rule: rule("{ host: catalog, subset: [{ name: v1 }] }") },
    expected: ['Error [IST0106] (DestinationRule shop/catalog) unknown field "subset" in "spec"'],
  },
  {
    name: "a misspelt kind",
    input: { gateway: gateway("Gatway", "[shop.example.com]"), rule: rule("{ host: catalog }", "DestinationRul") },
    expected: [
      "Error [TUL0003] (Gatway shop/public) Gatway is not a kind that the mesh reads; the resource is left out",
      "Error [TUL0003] (DestinationRul shop/catalog) DestinationRul is not a kind that the mesh reads; the resource is left out",
    ],
  },
  {
    name: "a Gateway without hosts",
    input: { gateway: gateway("Gateway", "no list") },
    expected: ['Error [IST0106] (Gateway shop/public) expected a list, found the text "no list"'],
  },
  {
    name: "a slip beside references that lead nowhere",
    input: {
      routes: routes(
        "{ hosts: [other.example.com], gateways: [public, private], http: [{ retry: {}, route: [{ destination: { host: catalgo } }, { destination: { host: catalog, subset: v9 } }] }] }",
      ),
    },
    expected: [
      'Error [IST0106] (VirtualService shop/routes) unknown field "retry" in "http"',
      'Error [IST0101] (VirtualService shop/routes) gateway "shop/private" not found',
      'Error [IST0101] (VirtualService shop/routes) host "catalgo" not found',
      'Error [IST0101] (VirtualService shop/routes) subset "v9" of host "catalog.shop.svc.cluster.local" not found',
    ],
  },
];

for (const { name, input, expected } of cases) {
  test(`refused: ${name}`, () => {
    const { resources, drafts, findings } = loadText(Object.values({ ...good, ...input }).join("\n---\n"), "m.yaml");
    const all = [...findings, ...analyze(resources, { drafts })]
      .filter(({ severity, code }) => severity !== "info" && code !== "IST0127")
      .map(({ place: _place, path: _path, suggestion: _suggestion, ...finding }) => renderFinding(finding));
    assert.deepEqual(all.filter((text) => !text.includes("no workload")).sort(), [...expected].sort());
  });
}

test("what is no kind of the mesh and no slip of the pen stays a warning", () => {
  const core =
    "Binding Endpoints Event LimitRange PersistentVolume PersistentVolumeClaim PodTemplate ReplicationController ResourceQuota ComponentStatus";
  const others = core.split(" ").map((kind) => ["v1", kind]);
  const workloads = ["StatefulSet", "DaemonSet", "ReplicaSet", "ControllerRevision"].map((kind) => ["apps/v1", kind]);
  const foreign = [
    ["serving.knative.dev/v1", "Service"],
    ["gateway.networking.k8s.io/v1", "Gateway"],
    ["gateway.networking.k8s.io/v1", "HTTPRoute"],
    ["example.com/v1", "VirtualServce"],
  ];
  for (const [apiVersion, kind] of [...others, ...workloads, ...foreign]) {
    const { findings, drafts } = loadText(
      `{ apiVersion: ${apiVersion}, kind: ${kind}, metadata: { name: a } }`,
      "m.yaml",
    );
    assert.deepEqual([findings.map(({ severity }) => severity), drafts], [["warning"], []], `${apiVersion} ${kind}`);
  }
});
