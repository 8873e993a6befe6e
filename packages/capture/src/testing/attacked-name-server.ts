// The program that the attacks are made on: the name server beside a workload in a process of its own, so that what it
// holds can be counted. Its argument is the port of the machine's name server; prints its own.
import { MetricRegistry } from "@tulle/telemetry";
import { systemClock } from "@tulle/timing";
import { startDnsServer } from "../dns/dns-server.ts";
import { testTable } from "./name-servers.ts";

const servers = [{ address: "127.0.0.1", port: Number(process.argv[2]) }];
const { addresses } = await startDnsServer({
  addresses: [{ address: "127.0.0.1", port: 0 }],
  names: () => testTable,
  ownDomains: [],
  forwarding: () => ({ servers, timeoutMs: 1000, attempts: 1 }),
  metrics: new MetricRegistry(),
  clock: systemClock,
});
process.stdout.write(`listening ${addresses[0]!.port}\n`);
