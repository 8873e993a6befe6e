// A machine with a network of its own, whose resolv.conf names the agent's name server at 127.0.0.1, and behind it
// another one. Runs the programs that it is given, each with the names behind it, and prints what they printed.
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { type NameEntry, NameTable, startDnsServer } from "@tulle/capture/dns";
import { MetricRegistry } from "@tulle/telemetry";
import { systemClock } from "@tulle/timing";
import { NetworkNamespace } from "../../tools/network-namespace.ts";
import { runCommand } from "../../tools/run-command.ts";
import { temporaryFolder } from "../../tools/temporary-folder.ts";
import { names } from "./names.ts";

const service = (name: string, addresses: readonly string[]): NameEntry => ({
  hostname: `${name}.svc.cluster.local`,
  addresses,
  isKubernetes: true,
});
const searchDomains = ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local"];
const table = new NameTable(
  [
    service("catalog.shop", ["10.96.0.7"]),
    service("six.shop", ["fd00::6"]),
    service("dual.people", ["10.96.0.8", "fd00::8"]),
    service(
      "many.shop",
      Array.from({ length: 60 }, (_, index) => `10.244.0.${index + 1}`),
    ),
    { hostname: "api.example.com", addresses: ["240.240.0.1"] },
  ],
  { namespace: "shop", serviceDomain: "svc.cluster.local", searchDomains: () => searchDomains },
);

await NetworkNamespace.current().mustRun("ip", "link", "set", "lo", "up");
const upstream = { address: "127.0.0.2", port: 53 };
await serveForeignNames(upstream.address, upstream.port);
const server = await startDnsServer({
  addresses: [{ address: "127.0.0.1", port: 53 }],
  names: () => table,
  ownDomains: ["cluster.local"],
  forwarding: () => ({ servers: [upstream], timeoutMs: 5000, attempts: 2 }),
  metrics: new MetricRegistry(),
  clock: systemClock,
});
const resolverFile = path.join(temporaryFolder("tulle-dns-clients-"), "resolv.conf");
await writeFile(resolverFile, `nameserver 127.0.0.1\nsearch ${searchDomains.join(" ")}\noptions ndots:5\n`);
const printed: Record<string, string> = {};
const commands = JSON.parse(process.argv[2] ?? "{}") as Readonly<Record<string, readonly string[]>>;
for (const [client, command] of Object.entries(commands)) {
  // The file is another one for this program alone.
  const script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"';
  const args = ["--mount", "--", "sh", "-c", script, resolverFile, ...command, ...Object.keys(names)];
  const { stdout, stderr } = await runCommand("unshare", args, { timeoutMs: 60_000 });
  printed[client] = stdout + stderr;
}
await server.close();
process.stdout.write(`${JSON.stringify(printed)}\n`);
process.exit(0);

/** One name with one address; all others are none. */
async function serveForeignNames(address: string, port: number): Promise<void> {
  const known = Buffer.from("\u0003www\u0007foreign\u0007example\u0000", "latin1");
  const socket = createSocket("udp4");
  socket.on("message", (query, remote) => {
    const typeAt = query.indexOf(0, 12) + 1;
    const isKnown = query.subarray(12, typeAt).equals(known);
    const hasAddress = isKnown && query.readUInt16BE(typeAt) === 1;
    const record = Buffer.from("c00c000100010000001e0004c0000201", "hex");
    const answer = Buffer.concat([query.subarray(0, typeAt + 4), ...(hasAddress ? [record] : [])]);
    answer.writeUInt16BE(isKnown ? 0x81_80 : 0x81_83, 2);
    answer.writeUInt16BE(hasAddress ? 1 : 0, 6);
    answer.writeUInt32BE(0, 8);
    socket.send(answer, remote.port, remote.address);
  });
  socket.bind(port, address);
  await once(socket, "listening");
}
