// Services with and without addresses, as names for DNS.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndpointSnapshot, MeshEndpoint, MeshService } from "../snapshot/mesh-snapshot.ts";
import { translateNames } from "./translate-names.ts";

const service = (name: string, addresses: readonly string[]): MeshService => ({
  hostname: `${name}.shop.svc.cluster.local`,
  name,
  namespace: "shop",
  addresses,
  selector: {},
  ports: [
    { name: "sql", number: 5432, targetPort: "sql", protocol: "tcp" },
    { name: "dns", number: 53, targetPort: 53, protocol: "udp" },
  ],
});

const endpoint = (address: string, port: number, hostname?: string): MeshEndpoint => ({
  address,
  port,
  labels: {},
  workload: "database",
  namespace: "shop",
  ...(hostname === undefined ? {} : { hostname }),
});

const endpoints: EndpointSnapshot = {
  leaving: new Map(),
  notReady: new Map(),
  encryptedOnly: [],
  byServicePort: new Map([
    [
      "database.shop.svc.cluster.local:5432",
      [endpoint("10.244.0.5", 15432, "database-0"), endpoint("fd00::6", 15432), endpoint("10.244.0.6", 15432)],
    ],
  ]),
};

test("a Service has its addresses; one without has those of its pods, which have names of their own", () => {
  const { table } = translateNames([service("catalog", ["10.96.0.7"]), service("database", [])], endpoints, [
    "0.0.0.0",
  ]);
  const rows = Object.entries(table).map(([hostname, { ips, shortname, ports, targets }]) => [
    hostname.replace(".shop.svc.cluster.local", ""),
    shortname,
    ips.join(" "),
    ports.map(({ name, number, isUdp }) => `${name} ${number}${isUdp ? " udp" : ""}`).join(", "),
    targets.length,
  ]);
  assert.deepEqual(rows, [
    ["catalog", "catalog", "10.96.0.7", "sql 5432, dns 53 udp", 0],
    ["database-0.database", "database-0.database", "10.244.0.5", "", 0],
    ["fd00--6.database", "fd00--6.database", "fd00::6", "", 0],
    ["10-244-0-6.database", "10-244-0-6.database", "10.244.0.6", "", 0],
    ["database", "database", "10.244.0.5 fd00::6 10.244.0.6", "sql 15432, dns 53 udp", 3],
  ]);
});

test("a Service without addresses and without pods has no name: another name server may know it", () => {
  const { table } = translateNames([service("nobody", [])], endpoints, ["0.0.0.0"]);
  assert.deepEqual(table, {});
});
