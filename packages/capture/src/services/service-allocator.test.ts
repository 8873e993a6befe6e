// Which addresses and node ports Services get. The expectations are those of Kubernetes' API server
// (https://kubernetes.io/docs/concepts/services-networking/cluster-ip-allocation).
import assert from "node:assert/strict";
import { test } from "node:test";
import { clusterDnsObjects } from "./cluster-dns-objects.ts";
import type { ClusterService } from "./cluster-objects.ts";
import { parseClusterRanges, ServiceAllocator } from "./service-allocator.ts";

const dual = ["10.96.0.0/16", "fd96::/108"];

function service(name: string, spec: Partial<ClusterService["spec"]> = {}): ClusterService {
  return { metadata: { name, namespace: "shop" }, spec: { ports: [{ port: 80, protocol: "TCP" }], ...spec } };
}

interface Row {
  readonly name: string;
  readonly ranges?: readonly string[];
  readonly spec: Partial<ClusterService["spec"]>;
  /** A pattern for each address. */
  readonly addresses: readonly RegExp[];
  readonly problems?: readonly string[];
}

const rows: readonly Row[] = [
  { name: "nothing asked for", spec: {}, addresses: [/^10\.96\./] },
  {
    name: "the first range is that of whoever asks for none",
    ranges: dual.toReversed(),
    spec: {},
    addresses: [/^fd96/],
  },
  { name: "an address is kept", spec: { clusterIP: "10.96.0.10" }, addresses: [/^10\.96\.0\.10$/] },
  { name: "headless", spec: { clusterIP: "None" }, addresses: [] },
  { name: "ExternalName", spec: { type: "ExternalName" }, addresses: [] },
  { name: "IPv6 alone", spec: { ipFamilies: ["IPv6"] }, addresses: [/^fd96/] },
  { name: "both, where both are", spec: { ipFamilyPolicy: "PreferDualStack" }, addresses: [/^10\.96/, /^fd96/] },
  {
    name: "both, IPv6 first",
    spec: { ipFamilyPolicy: "RequireDualStack", ipFamilies: ["IPv6", "IPv4"] },
    addresses: [/^fd96/, /^10\.96/],
  },
  {
    name: "preferred both, where one is",
    ranges: ["10.96.0.0/16"],
    spec: { ipFamilyPolicy: "PreferDualStack" },
    addresses: [/^10\.96/],
  },
  {
    name: "required both, where one is",
    ranges: ["10.96.0.0/16"],
    spec: { ipFamilyPolicy: "RequireDualStack" },
    addresses: [],
    problems: ["spec.ipFamilyPolicy: RequireDualStack takes a range of Services of each family"],
  },
  {
    name: "a family that nobody has",
    ranges: ["10.96.0.0/16"],
    spec: { ipFamilies: ["IPv6"] },
    addresses: [],
    problems: ["spec.ipFamilies: there is no range of Services for IPv6"],
  },
  {
    name: "one address given, the other one found",
    spec: { clusterIP: "10.96.0.10", ipFamilyPolicy: "PreferDualStack" },
    addresses: [/^10\.96\.0\.10$/, /^fd96/],
  },
  { name: "an address alone says the family", spec: { clusterIP: "fd96::7" }, addresses: [/^fd96::7$/] },
  {
    name: "two addresses say both, and their order",
    spec: { clusterIPs: ["fd96::7", "10.96.0.7"] },
    addresses: [/^fd96::7$/, /^10\.96\.0\.7$/],
  },
  {
    name: "an address of elsewhere",
    spec: { clusterIP: "192.168.0.1" },
    addresses: [],
    problems: ["spec.clusterIP: 192.168.0.1 is in none of the ranges of Services (10.96.0.0/16, fd96::/108)"],
  },
];

for (const { name, ranges = dual, spec, addresses, problems = [] } of rows) {
  test(name, () => {
    const found = new ServiceAllocator({ clusterRanges: ranges }).allocate([service("catalog", spec)]);
    const { clusterIP, clusterIPs = [] } = found.services[0]!.spec;
    const own = spec.clusterIP === "None" ? [] : clusterIPs;
    assert.equal(own.length, addresses.length, own.join(" "));
    for (const [index, pattern] of addresses.entries()) assert.match(own[index]!, pattern);
    if (own.length > 0) assert.equal(clusterIP, own[0]);
    assert.deepEqual(
      found.problems.map(({ path, message }) => `${path}: ${message}`),
      problems,
    );
  });
}

const named = (count: number): readonly ClusterService[] =>
  Array.from({ length: count }, (_, index) => service(`s${index}`, { type: "NodePort" }));
const addressesOf = (services: readonly ClusterService[]): readonly (string | undefined)[] =>
  services.map(({ spec }) => spec.clusterIP);

test("all are different, behind what the range keeps for those that ask", () => {
  const { services, problems } = new ServiceAllocator({ clusterRanges: dual }).allocate(named(2000));
  assert.deepEqual(problems, []);
  assert.equal(new Set(addressesOf(services)).size, 2000);
  assert.equal(new Set(services.map(({ spec }) => spec.ports[0]!.nodePort)).size, 2000);
  for (const { spec } of services) {
    const place = Buffer.from(spec.clusterIP!.split(".").map(Number)).readUInt16BE(2);
    assert.ok(place > 256);
    // 2768 ports: 86 of them are kept (KEP-3668).
    assert.ok(spec.ports[0]!.nodePort! >= 30_086 && spec.ports[0]!.nodePort! <= 32_767);
  }
});

test("who has an address keeps it while others come and go, and another allocator finds the same for the same names", () => {
  const allocator = new ServiceAllocator({ clusterRanges: dual });
  const all = named(300);
  const first = allocator.allocate(all).services;
  assert.deepEqual(allocator.allocate(all.toReversed()).services.toReversed(), first);
  const fewer = allocator.allocate(all.slice(100)).services;
  assert.deepEqual(fewer, first.slice(100));
  const again = new ServiceAllocator({ clusterRanges: dual }).allocate(all).services;
  assert.deepEqual(again, first);
  // What it has been given, written down, is what it has.
  assert.deepEqual(new ServiceAllocator({ clusterRanges: dual }).allocate(first).services, first);
});

test("a range that is full says so, the kept part is used last", () => {
  const { services, problems } = new ServiceAllocator({
    clusterRanges: ["10.96.0.0/27"],
    nodePorts: [30_000, 30_039],
  }).allocate(named(45));
  const found = addressesOf(services).filter((address) => address !== undefined);
  assert.equal(new Set(found).size, 30); // neither the first nor the last of 32
  assert.equal(problems.filter(({ message }) => message === "no address of 10.96.0.0/27 is free").length, 15);
  assert.equal(problems.filter(({ message }) => message === "no node port is free").length, 5);
});

test("two ask for the same: the older one has it, and the other one nothing", () => {
  const asked = { clusterIP: "10.96.0.10", type: "NodePort", ports: [{ port: 80, nodePort: 30_080 }] };
  const of = (name: string, creationTimestamp: string): ClusterService => ({
    ...service(name, asked),
    metadata: { name, namespace: "shop", creationTimestamp },
  });
  const services = [of("a", "2026-01-02T00:00:00Z"), of("z", "2026-01-01T00:00:00Z")];
  const allocator = new ServiceAllocator({ clusterRanges: dual });
  const found = allocator.allocate(services);
  assert.deepEqual(addressesOf(found.services), [undefined, "10.96.0.10"]);
  assert.deepEqual(
    found.problems.map(({ service: { name }, path, message }) => `${name} ${path}: ${message}`),
    [
      "a spec.clusterIP: 10.96.0.10 is the Service shop/z's already",
      "a spec.ports[0].nodePort: the node port 30080 is the Service shop/z's already",
    ],
  );
  // Once it is gone the other one may have it.
  assert.deepEqual(addressesOf(allocator.allocate(services.slice(0, 1)).services), ["10.96.0.10"]);
});

test("nobody takes the name server's address, of whatever name and age", () => {
  const dns = clusterDnsObjects({ addresses: ["10.96.0.10"], servers: [{ address: "172.31.255.1", port: 53 }] });
  const thief: ClusterService = {
    metadata: { name: "a", namespace: "a", creationTimestamp: "0001-01-01T00:00:00Z" },
    spec: { clusterIP: "10.96.0.10", ports: [{ port: 53, protocol: "UDP" }] },
  };
  const young: ClusterService = { ...thief, metadata: { name: "b", namespace: "a" } };
  const allocator = new ServiceAllocator({ clusterRanges: dual });
  const { services, problems } = allocator.allocate([thief, young, dns.service]);
  assert.deepEqual(
    services.map(({ spec }) => spec.clusterIPs),
    [undefined, undefined, ["10.96.0.10"]],
  );
  assert.deepEqual(
    problems.map(({ message }) => message),
    Array(2).fill("10.96.0.10 is the Service kube-system/kube-dns's already"),
  );
});

test("a port by TCP and one by UDP may have the same number, one outside of the range may not", () => {
  const { services, problems } = new ServiceAllocator({ clusterRanges: dual }).allocate([
    service("dns", {
      type: "NodePort",
      ports: [
        { name: "a", port: 53, protocol: "TCP", nodePort: 30_053 },
        { name: "b", port: 53, protocol: "UDP", nodePort: 30_053 },
        { name: "c", port: 80, protocol: "TCP", nodePort: 80 },
      ],
    }),
  ]);
  assert.deepEqual(
    services[0]!.spec.ports.map(({ nodePort }) => nodePort),
    [30_053, 30_053, undefined],
  );
  assert.deepEqual(
    problems.map(({ message }) => message),
    ["80 is no node port: they go from 30000 to 32767"],
  );
});

test("an address that somebody gives up is free, one that is only no longer asked for stays", () => {
  const allocator = new ServiceAllocator({ clusterRanges: dual });
  const at = (clusterIP?: string): readonly ClusterService[] => [
    service("catalog", clusterIP === undefined ? {} : { clusterIP }),
  ];
  const own = (services: readonly ClusterService[]) => addressesOf(allocator.allocate(services).services);
  assert.deepEqual(own(at("10.96.0.9")), ["10.96.0.9"]);
  assert.deepEqual(own(at()), ["10.96.0.9"]);
  assert.deepEqual(own(at("10.96.0.10")), ["10.96.0.10"]);
  assert.deepEqual(own([...at(), service("orders", { clusterIP: "10.96.0.9" })]), ["10.96.0.10", "10.96.0.9"]);
});

for (const { name, spec, families, policy } of [
  { name: "nothing", spec: {}, families: ["IPv4"], policy: "SingleStack" },
  { name: "a headless one", spec: { clusterIP: "None" }, families: ["IPv4"], policy: "SingleStack" },
  { name: "both", spec: { ipFamilies: ["IPv6", "IPv4"] }, families: ["IPv6", "IPv4"], policy: "RequireDualStack" },
  {
    name: "both of a headless one",
    spec: { clusterIP: "None", ipFamilyPolicy: "PreferDualStack" },
    families: ["IPv4", "IPv6"],
    policy: "PreferDualStack",
  },
]) {
  test(`a Service says its families, of ${name} asked for`, () => {
    const [found] = new ServiceAllocator({ clusterRanges: dual }).allocate([service("catalog", spec)]).services;
    assert.deepEqual([found!.spec.ipFamilies, found!.spec.ipFamilyPolicy], [families, policy]);
  });
}

for (const { text, isGood } of [
  { text: "10.96.0.0/16", isGood: true },
  { text: "fd96::/108", isGood: true },
  { text: "fd96::/112,10.96.0.0/12", isGood: true },
  { text: "10.96.0.0/16,10.97.0.0/16", isGood: false },
  { text: "10.96.0.0/11", isGood: false },
  { text: "10.96.0.0/29", isGood: false },
  { text: "fd96::/64", isGood: false },
  { text: "10.96.0.0", isGood: false },
  { text: "300.0.0.0/16", isGood: false },
  { text: "10.96.0.0/16,", isGood: false },
  { text: "", isGood: false },
]) {
  test(`${JSON.stringify(text)} as ranges of Services`, () =>
    assert.deepEqual(parseClusterRanges(text), isGood ? text.split(",") : undefined));
}
