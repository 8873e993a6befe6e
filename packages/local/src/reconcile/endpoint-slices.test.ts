// From Services and pods to the addresses that proxies get.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "@tulle/config";
import { buildEndpointSlices, type EndpointPod } from "./endpoint-slices.ts";

function service(spec: Partial<Service["spec"]> = {}): Service {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "catalog", namespace: "shop" },
    spec: {
      type: "ClusterIP",
      selector: { app: "catalog" },
      ports: [{ name: "http", port: 80, targetPort: "http", protocol: "TCP" }],
      ...spec,
    },
  };
}

function pod(name: string, changes: Partial<EndpointPod> = {}): EndpointPod {
  return {
    name,
    namespace: "shop",
    labels: { app: "catalog" },
    addresses: [`127.20.0.${name.charCodeAt(0)}`],
    ports: [{ name: "http", port: 3000 }],
    ready: true,
    leaving: false,
    ...changes,
  };
}

const cases: readonly { name: string; service: Service; pods: EndpointPod[]; expected: string[] }[] = [
  { name: "ready pods", service: service(), pods: [pod("b"), pod("a")], expected: ["3000: a=ready b=ready"] },
  {
    name: "an unready pod stands there, not ready",
    service: service(),
    pods: [pod("a", { ready: false })],
    expected: ["3000: a=not"],
  },
  {
    name: "a leaving pod gets no new requests",
    service: service(),
    pods: [pod("a", { leaving: true })],
    expected: ["3000: a=not"],
  },
  {
    name: "unless all are wanted",
    service: service({ publishNotReadyAddresses: true }),
    pods: [pod("a", { ready: false })],
    expected: ["3000: a=ready"],
  },
  { name: "another namespace", service: service(), pods: [pod("a", { namespace: "other" })], expected: [] },
  { name: "other labels", service: service(), pods: [pod("a", { labels: { app: "x" } })], expected: [] },
  { name: "no selector", service: service({ selector: undefined! }), pods: [pod("a")], expected: [] },
  {
    name: "a named port that differs by pod",
    service: service(),
    pods: [pod("a"), pod("b", { ports: [{ name: "http", port: 3001 }] })],
    expected: ["3000: a=ready", "3001: b=ready"],
  },
  {
    name: "a pod without the named port",
    service: service(),
    pods: [pod("a", { ports: [] })],
    expected: [": a=ready"],
  },
  {
    name: "a target port left out is the port",
    service: service({ ports: [{ port: 80, protocol: "TCP" }] }),
    pods: [pod("a")],
    expected: ["80: a=ready"],
  },
];

for (const { name, service: each, pods, expected } of cases) {
  test(name, () => {
    const slices = buildEndpointSlices([each], pods).map(
      ({ ports, endpoints }) =>
        `${ports.map(({ port }) => port).join(",")}: ${endpoints
          .map(({ targetRef, conditions }) => `${targetRef?.name}=${conditions?.ready === true ? "ready" : "not"}`)
          .join(" ")}`,
    );
    assert.deepEqual(slices, expected);
  });
}

const both = { addresses: ["10.244.1.2", "fd00:10:244:1::2"] };

for (const { name, spec, pods, expected } of [
  { name: "a Service that names no family", spec: {}, pods: [both], expected: ["IPv4 10.244.1.2"] },
  { name: "IPv6 alone", spec: { ipFamilies: ["IPv6"] }, pods: [both], expected: ["IPv6 fd00:10:244:1::2"] },
  {
    name: "both families",
    spec: { ipFamilies: ["IPv6", "IPv4"] },
    pods: [both],
    expected: ["IPv4 10.244.1.2", "IPv6 fd00:10:244:1::2"],
  },
  {
    name: "pods of one family, whatever the Service asks for",
    spec: { ipFamilies: ["IPv6"] },
    pods: [{ addresses: ["127.20.0.1"] }],
    expected: ["IPv4 127.20.0.1"],
  },
] satisfies readonly {
  name: string;
  spec: Partial<Service["spec"]>;
  pods: readonly Partial<EndpointPod>[];
  expected: string[];
}[]) {
  test(`families: ${name}`, () => {
    const slices = buildEndpointSlices(
      [service(spec)],
      pods.map((changes) => pod("a", changes)),
    );
    assert.deepEqual(
      slices.map(({ addressType, endpoints }) => `${addressType} ${endpoints[0]!.addresses.join(" ")}`),
      expected,
    );
    assert.equal(new Set(slices.map(({ metadata }) => metadata.name)).size, slices.length);
  });
}

test("a slice keeps its name while pods come and go", () => {
  const [one] = buildEndpointSlices([service()], [pod("a")]);
  const [two] = buildEndpointSlices([service()], [pod("b"), pod("c")]);
  assert.equal(one!.metadata.name, two!.metadata.name);
});
