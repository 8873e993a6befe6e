// The process that the bench measures: the name server beside a workload, with a mesh of 1,000 Services, and one server
// to pass all other questions on to. Prints the port that it answers at.
import { NameTable, startDnsServer } from "@tulle/capture/dns";
import { MetricRegistry } from "@tulle/telemetry";
import { systemClock } from "@tulle/timing";
import { serviceCount } from "./questions.ts";

const [, , upstreamPort = ""] = process.argv;
const entries = Array.from({ length: serviceCount }, (_, index) => ({
  hostname: `service-${index}.shop.svc.cluster.local`,
  addresses: [`10.96.${index >> 8}.${index & 0xff}`],
  isKubernetes: true,
  ports: [{ name: "http", protocol: "tcp" as const, port: 80 }],
}));
const searchDomains = ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local"];
const table = new NameTable(entries, {
  namespace: "shop",
  serviceDomain: "svc.cluster.local",
  searchDomains: () => searchDomains,
});
const servers = [{ address: "127.0.0.1", port: Number(upstreamPort) }];
const { addresses } = await startDnsServer({
  addresses: [{ address: "127.0.0.1", port: 0 }],
  names: () => table,
  ownDomains: [],
  forwarding: () => ({ servers, timeoutMs: 5000, attempts: 2 }),
  metrics: new MetricRegistry(),
  clock: systemClock,
});
process.stdout.write(`listening ${addresses[0]!.port}\n`);
