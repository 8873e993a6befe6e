// Runs one proxy in a network namespace of its own, started by `unshare --net`, and sends requests to it, by its
// address, and to an address that the kernel leads to it: each on a connection of its own, and many on connections that
// are kept. Prints the CPU of each round as JSON.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { NetworkNamespace } from "../../tests/tools/network-namespace.ts";
import { startProcess, waitFor } from "../../tests/tools/processes.ts";
import { onCore } from "../measure/on-core.ts";
import { readProcessUsage } from "../measure/process-usage.ts";

/** Microseconds of CPU for each request. */
export interface RequestCost {
  readonly explicit: number;
  readonly captured: number;
}

export interface ConnectionRound {
  /** With a connection for itself. */
  readonly alone: RequestCost;
  /** On one that is kept. */
  readonly kept: RequestCost;
}

const [, , envoy = "", rounds = "1"] = process.argv;
const requestsARound = { alone: 2000, kept: 20_000 } as const;
const atATime = 16;
const cli = path.resolve(import.meta.dirname, "../../packages/cli/src/main.ts");
const rules = `
table inet bench {
  chain output {
    type nat hook output priority -100;
    ip daddr 10.96.0.0/16 meta l4proto tcp redirect to :15001
  }
}
`;
const type = (name: string): string => `type.googleapis.com/envoy.extensions.filters.${name}`;
const at = (address: string, port_value: number): object => ({ socket_address: { address, port_value } });
const answers = {
  "@type": type("network.http_connection_manager.v3.HttpConnectionManager"),
  stat_prefix: "bench",
  route_config: {
    virtual_hosts: [
      { name: "all", domains: ["*"], routes: [{ match: { prefix: "/" }, direct_response: { status: 200 } }] },
    ],
  },
  http_filters: [{ name: "router", typed_config: { "@type": type("http.router.v3.Router") } }],
};
const filter_chains = [{ filters: [{ name: "http", typed_config: answers }] }];
const listeners = [
  { name: "virtual", address: at("0.0.0.0", 15_001), use_original_dst: true, filter_chains },
  { name: "captured", address: at("0.0.0.0", 80), bind_to_port: false, filter_chains },
  { name: "explicit", address: at("127.0.0.1", 8080), filter_chains },
];

function ask(host: string, port: number, agent: http.Agent | false = false): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = http.get({ host, port, agent }, (response) => response.resume().once("end", resolve));
    request.once("error", reject);
  });
}

type Way = readonly [host: string, port: number];

const explicitly: Way = ["127.0.0.1", 8080];
const byCapture: Way = ["10.96.0.1", 80];

async function askMany(count: number, way: Way, agent: http.Agent | false): Promise<void> {
  let begun = 0;
  const askOn = async (): Promise<void> => {
    for (; begun < count; await ask(...way, agent)) begun += 1;
  };
  await Promise.all(Array.from({ length: atATime }, askOn));
}

async function cpuOf(processId: number, way: Way, kind: keyof ConnectionRound): Promise<number> {
  const count = requestsARound[kind];
  const agent = kind === "kept" && new http.Agent({ keepAlive: true, maxSockets: atATime });
  // Connections that are kept are open before anything is measured.
  if (agent !== false) await askMany(atATime, way, agent);
  const before = await readProcessUsage(processId);
  await askMany(count, way, agent);
  const after = await readProcessUsage(processId);
  if (agent !== false) agent.destroy();
  return ((after.cpuSeconds - before.cpuSeconds) * 1e6) / count;
}

async function costOf(processId: number, kind: keyof ConnectionRound): Promise<RequestCost> {
  const explicit = await cpuOf(processId, explicitly, kind);
  return { explicit, captured: await cpuOf(processId, byCapture, kind) };
}

const folder = await mkdtemp(path.join(tmpdir(), "tulle-bench-"));
const bootstrap = path.join(folder, "proxy.json");
await writeFile(
  bootstrap,
  JSON.stringify({ admin: { address: at("127.0.0.1", 15_000) }, static_resources: { listeners } }),
);
const network = NetworkNamespace.current();
await network.mustRun("ip", "link", "set", "lo", "up");
await network.mustRun("ip", "route", "add", "local", "10.96.0.0/16", "dev", "lo");
await network.mustRun("nft", rules);
const command =
  envoy === ""
    ? [process.execPath, cli, "proxy", "-c", bootstrap]
    : [envoy, "-c", bootstrap, "--concurrency", "1", "--disable-hot-restart"];
const proxy = await startProcess(...onCore(0, command[0]!, [...command.slice(1), "-l", "error"]));
await waitFor(
  () =>
    ask(...byCapture).then(
      () => true,
      () => false,
    ),
  { what: "the proxy", details: () => proxy.output() },
);
await costOf(proxy.pid, "alone");
await costOf(proxy.pid, "kept");
const measured: ConnectionRound[] = [];
for (let round = 0; round < Number(rounds); round += 1) {
  measured.push({ alone: await costOf(proxy.pid, "alone"), kept: await costOf(proxy.pid, "kept") });
}
await proxy.stop();
await rm(folder, { recursive: true });
process.stdout.write(`${JSON.stringify(measured)}\n`);
