// Runs one proxy in a network namespace of its own, started by `unshare --net`, and opens connections to it, one
// request on each: by its address, and to an address that the kernel leads to it. Prints the CPU of each round as JSON.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { NetworkNamespace } from "../../tests/tools/network-namespace.ts";
import { startProcess, waitFor } from "../../tests/tools/processes.ts";
import { onCore } from "../measure/on-core.ts";
import { readProcessUsage } from "../measure/process-usage.ts";

/** Microseconds of CPU for each connection. */
export interface ConnectionRound {
  readonly explicit: number;
  readonly captured: number;
}

const [, , envoy = "", rounds = "1"] = process.argv;
const connectionsARound = 2000;
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

function ask(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = http.get({ host, port, agent: false }, (response) => response.resume().once("end", resolve));
    request.once("error", reject);
  });
}

async function cpuOf(processId: number, host: string, port: number): Promise<number> {
  const before = await readProcessUsage(processId);
  let begun = 0;
  const askOn = async (): Promise<void> => {
    for (; begun < connectionsARound; await ask(host, port)) begun += 1;
  };
  await Promise.all(Array.from({ length: atATime }, askOn));
  const after = await readProcessUsage(processId);
  return ((after.cpuSeconds - before.cpuSeconds) * 1e6) / connectionsARound;
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
    ask("10.96.0.1", 80).then(
      () => true,
      () => false,
    ),
  { what: "the proxy", details: () => proxy.output() },
);
await cpuOf(proxy.pid, "127.0.0.1", 8080);
await cpuOf(proxy.pid, "10.96.0.1", 80);
const measured: ConnectionRound[] = [];
for (let round = 0; round < Number(rounds); round += 1) {
  const explicit = await cpuOf(proxy.pid, "127.0.0.1", 8080);
  measured.push({ explicit, captured: await cpuOf(proxy.pid, "10.96.0.1", 80) });
}
await proxy.stop();
await rm(folder, { recursive: true });
process.stdout.write(`${JSON.stringify(measured)}\n`);
