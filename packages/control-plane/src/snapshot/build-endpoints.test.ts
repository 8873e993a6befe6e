// Pods of both families: one endpoint each, at the address of the Service's first family; names know both.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText, MemoryStore } from "@tulle/config";
import { translateNames } from "../translate/translate-names.ts";
import { buildEndpoints } from "./build-endpoints.ts";
import { buildSnapshot } from "./build-snapshot.ts";

const slice = (addressType: string, addresses: Readonly<Record<string, string>>): string => `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: catalog-${addressType.toLowerCase()}, namespace: shop, labels: { kubernetes.io/service-name: catalog } }
addressType: ${addressType}
ports: [{ name: http, port: 3000 }]
endpoints: [${Object.entries(addresses)
  .map(([pod, address]) => {
    const target = pod === "none" ? "" : `, targetRef: { kind: Pod, name: ${pod} }`;
    return `{ addresses: ["${address}"]${target} }`;
  })
  .join(", ")}]`;

const ipv4 = slice("IPv4", { a: "10.244.1.2", b: "10.244.2.2", none: "10.0.0.1" });
const ipv6 = slice("IPv6", { a: "fd00::2", none: "fd00::9" });

interface Row {
  readonly name: string;
  readonly clusterIPs: string;
  readonly slices: readonly string[];
  readonly addresses: readonly string[];
  readonly names: Readonly<Record<string, readonly string[]>>;
}

const host = "catalog.shop.svc.cluster.local";

const rows: readonly Row[] = [
  {
    name: "IPv4 first",
    clusterIPs: '10.96.0.7, "fd96::7"',
    slices: [ipv6, ipv4],
    addresses: ["10.0.0.1", "10.244.1.2", "10.244.2.2", "fd00::9"],
    names: { [host]: ["10.96.0.7", "fd96::7"] },
  },
  {
    name: "IPv6 first",
    clusterIPs: '"fd96::7", 10.96.0.7',
    slices: [ipv4, ipv6],
    addresses: ["10.0.0.1", "10.244.2.2", "fd00::2", "fd00::9"],
    names: { [host]: ["fd96::7", "10.96.0.7"] },
  },
  {
    name: "IPv6 alone",
    clusterIPs: '"fd96::7"',
    slices: [ipv6],
    addresses: ["fd00::2", "fd00::9"],
    names: { [host]: ["fd96::7"] },
  },
  {
    name: "headless",
    clusterIPs: "None",
    slices: [slice("IPv4", { a: "10.244.1.2" }), slice("IPv6", { a: "fd00::2" })],
    addresses: ["10.244.1.2"],
    names: {
      [host]: ["10.244.1.2", "fd00::2"],
      [`10-244-1-2.${host}`]: ["10.244.1.2"],
      [`fd00--2.${host}`]: ["fd00::2"],
    },
  },
];

for (const { name, clusterIPs, slices, addresses, names } of rows) {
  test(`pods of both families: ${name}`, async () => {
    const service = `
apiVersion: v1
kind: Service
metadata: { name: catalog, namespace: shop }
spec: { clusterIPs: [${clusterIPs}], ports: [{ name: http, port: 80, targetPort: 3000 }] }`;
    const { resources, findings } = loadText([service, ...slices].join("\n---\n"), "shop.yaml");
    assert.deepEqual(findings, []);
    const store = new MemoryStore();
    await store.applyAll(resources);
    const snapshot = buildSnapshot(store);
    const endpoints = buildEndpoints(store, snapshot);
    const all = [...endpoints.byServicePort.values()].flat();
    assert.deepEqual(
      all.map(({ address }) => address),
      addresses,
    );
    const { table } = translateNames(snapshot.services, endpoints, ["0.0.0.0", "::"]);
    assert.deepEqual(Object.fromEntries(Object.entries(table).map(([key, { ips }]) => [key, ips])), names);
  });
}
