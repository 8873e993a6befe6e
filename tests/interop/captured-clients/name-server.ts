// The agent's name server in a captured pod, at the port that questions are led to: knows the names that it is given,
// and asks the server outside for all others.
import { type NameEntry, NameTable, startDnsServer } from "@tulle/capture/dns";
import { MetricRegistry } from "@tulle/telemetry";
import { systemClock } from "@tulle/timing";

const [, , names = "{}", upstream = "", searchDomains = ""] = process.argv;
const entries: NameEntry[] = Object.entries(JSON.parse(names) as Readonly<Record<string, string>>).map(
  ([hostname, address]) => ({ hostname, addresses: [address], isKubernetes: true }),
);
const table = new NameTable(entries, {
  namespace: "shop",
  serviceDomain: "svc.cluster.local",
  searchDomains: () => searchDomains.split(" "),
});
await startDnsServer({
  addresses: ["127.0.0.1", "::1"].map((address) => ({ address, port: 15_053 })),
  names: () => table,
  ownDomains: ["cluster.local"],
  forwarding: () => ({ servers: [{ address: upstream, port: 53 }], timeoutMs: 5000, attempts: 2 }),
  metrics: new MetricRegistry(),
  clock: systemClock,
});
process.stdout.write("listens\n");
