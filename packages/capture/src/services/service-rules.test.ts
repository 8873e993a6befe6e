// What rules are made of which Services, and what stays out of them; that they do on the wire what they say is in
// services-network.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { debianTool } from "../../../../tests/tools/debian-tool.ts";
import { NetworkNamespace } from "../../../../tests/tools/network-namespace.ts";
import { service, serviceNodes, clusterRanges, slices } from "../testing/services.ts";
import { applyServiceRules } from "./apply-service-rules.ts";
import type { ClusterEndpointSlice, ClusterService } from "./cluster-objects.ts";
import { changeText, wholeText, type RuleTable } from "./rule-table.ts";
import { servicePorts } from "./service-ports.ts";
import { serviceRules } from "./service-rules.ts";

const ready = { ready: true };
const [node] = serviceNodes;

function tableOf(services: readonly ClusterService[], endpointSlices: readonly ClusterEndpointSlice[]): RuleTable {
  const { ports } = servicePorts({ services, endpointSlices });
  return serviceRules({ node: node!, clusterRanges, ports });
}

const at = (address: string, spec: Partial<ClusterService["spec"]> = {}): ClusterService =>
  service("catalog", { clusterIP: address, ...spec });

const problems: readonly {
  readonly name: string;
  readonly services: readonly ClusterService[];
  readonly expected: readonly string[];
}[] = [
  { name: "nothing is wrong", services: [at("10.96.0.7")], expected: [] },
  {
    name: "an address of the world is nobody's to take (CVE-2020-8554)",
    services: [at("10.96.0.7", { externalIPs: ["8.8.8.8", "203.0.113.5", "example.com", "203.0.113.0/24"] })],
    expected: [
      "spec.externalIPs[0]: 8.8.8.8 is not an address that Services may take: pods that call it would be led astray",
      "spec.externalIPs[2]: this is no address",
      "spec.externalIPs[3]: this is no address",
    ],
  },
  {
    name: "a Service has its external address first, if it is older",
    services: [
      {
        ...service("late", { clusterIP: "10.96.0.8", externalIPs: ["203.0.113.5"] }),
        metadata: { name: "late", namespace: "a", creationTimestamp: "2026-01-02T00:00:00Z" },
      },
      {
        ...at("10.96.0.7", { externalIPs: ["203.0.113.5"] }),
        metadata: { name: "early", namespace: "b", creationTimestamp: "2026-01-01T00:00:00Z" },
      },
    ],
    expected: [
      "spec.externalIPs[0]: 203.0.113.5, port 80, is the Service b/early's already",
      "spec.externalIPs[0]: 203.0.113.5, port 80, is the Service b/early's already",
    ],
  },
  {
    name: "names that would be words of a script",
    services: [{ ...at("10.96.0.7"), metadata: { name: 'x" } ; flush ruleset', namespace: "shop" } }],
    expected: ["metadata.name: this is no name that Kubernetes allows; the Service is left out"],
  },
  {
    name: "a protocol that nobody carries",
    services: [at("10.96.0.7", { ports: [{ port: 80, protocol: "SCTP" }] })],
    expected: ["spec.ports[0].protocol: SCTP is not carried; TCP and UDP are"],
  },
  {
    name: "headless and external names have no rules",
    services: [at("None"), at("10.96.0.7", { type: "ExternalName" })],
    expected: [],
  },
];

for (const { name, services, expected } of problems) {
  test(name, () => {
    const found = servicePorts({ services, endpointSlices: [], externalRanges: ["203.0.113.0/24"] });
    assert.deepEqual(
      found.problems.map(({ path, message }) => `${path}: ${message}`),
      expected,
    );
  });
}

test("addresses of slices that are none stay out of the script", () => {
  const [ipv4] = slices("catalog", { one: ready });
  const bad = { ...ipv4!, endpoints: [{ addresses: ["10.0.0.1 ; flush ruleset"] }, { addresses: ["fd00::1"] }] };
  const { ports } = servicePorts({ services: [at("10.96.0.7")], endpointSlices: [bad] });
  assert.deepEqual(ports[0]!.endpoints, []);
});

test("the same Services in another order, and the same pods in another order, are no change", () => {
  const services = [at("10.96.0.7"), service("orders", { clusterIP: "10.96.0.8" })];
  const all = [...slices("catalog", { one: ready, two: ready }), ...slices("orders", { three: ready })];
  const other = [...slices("orders", { three: ready }), ...slices("catalog", { two: ready, one: ready })];
  assert.equal(changeText(tableOf(services, all), tableOf(services.toReversed(), other.toReversed())), "");
});

test("one pod more of one Service is a few lines", () => {
  const services = [at("10.96.0.7"), service("orders", { clusterIP: "10.96.0.8" })];
  const before = tableOf(services, [...slices("catalog", { one: ready }), ...slices("orders", { one: ready })]);
  const after = tableOf(services, [
    ...slices("catalog", { one: ready, two: ready }),
    ...slices("orders", { one: ready }),
  ]);
  assert.deepEqual(changeText(before, after).trim().split("\n"), [
    "flush chain inet tulle_services cluster4/shop/catalog/tcp/80",
    "flush chain inet tulle_services cluster4/shop/catalog/udp/80",
    "add rule inet tulle_services cluster4/shop/catalog/tcp/80 meta l4proto tcp dnat ip to numgen random mod 2 map { 0 : 10.244.1.11 . 8080, 1 : 10.244.2.12 . 8080 }",
    "add rule inet tulle_services cluster4/shop/catalog/udp/80 meta l4proto udp dnat ip to numgen random mod 2 map { 0 : 10.244.1.11 . 8080, 1 : 10.244.2.12 . 8080 }",
  ]);
});

/** As nft prints it, without counters. */
async function installed(network: NetworkNamespace): Promise<readonly string[]> {
  const text = await network.mustRun("nft", "list", "table", "inet", "tulle_services");
  // Chains and sets in the order of their names: a change puts a new one at the end.
  return text
    .replaceAll(/packets \d+ bytes \d+/g, "")
    .split(/\n(?=\t(?:set|map|chain) )/)
    .map((part) => part.replaceAll(/,\s+/g, ", ").trim().replace(/\n\}$/, ""))
    .sort();
}

test("the kernel has the same after any changes as after all at once", async () => {
  await debianTool("nftables");
  using changed = await NetworkNamespace.create();
  using whole = await NetworkNamespace.create();
  const sticky = { sessionAffinity: "ClientIP" };
  const seconds = (timeoutSeconds: number): Partial<ClusterService["spec"]> => ({
    ...sticky,
    sessionAffinityConfig: { clientIP: { timeoutSeconds } },
  });
  const orders = service("orders", { clusterIP: "10.96.0.8", clusterIPs: ["10.96.0.8", "fd96::8"] });
  const three = { one: ready, two: ready, three: ready };
  const onNodes = { type: "NodePort", ports: [{ name: "web", port: 80, nodePort: 30_080 }] };
  const steps: readonly (readonly [readonly ClusterService[], readonly ClusterEndpointSlice[]])[] = [
    [[], []],
    [[at("10.96.0.7")], slices("catalog", { one: ready })],
    [
      [at("10.96.0.7", onNodes), orders],
      [...slices("catalog", three), ...slices("orders", {})],
    ],
    [
      [at("10.96.0.7", { ...onNodes, ...sticky }), orders],
      [...slices("catalog", three), ...slices("orders", three)],
    ],
    [[at("10.96.0.7", { ...onNodes, ...seconds(60), externalTrafficPolicy: "Local" })], slices("catalog", three)],
    [[at("10.96.0.7", seconds(61)), orders], slices("catalog", { one: ready, two: ready })],
    [[at("10.96.0.9"), orders], slices("catalog", { two: ready })],
    [[orders], slices("orders", three)],
    [[], []],
  ];
  let before: RuleTable | undefined;
  for (const [index, [services, endpointSlices]] of steps.entries()) {
    const table = tableOf(services, endpointSlices);
    if (before !== undefined) {
      // By the change itself: `applyServiceRules` would make the whole table where that fails.
      const file = `<<'END' nft -f -\n${changeText(before, table)}END\n`;
      await changed.mustRun("sh", "-ec", file);
    } else await applyServiceRules(table, undefined, { prefix: changed.enter });
    await whole.mustRun("sh", "-ec", `<<'END' nft -f -\n${wholeText(table)}END\n`);
    assert.deepEqual(await installed(changed), await installed(whole), `step ${index}`);
    before = table;
  }
});
