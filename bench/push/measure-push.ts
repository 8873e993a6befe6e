// What a push of ten thousand routes does to the requests that run meanwhile: 2,000 a second, and the p99 of a few
// seconds with one push in them against that of as many seconds before, without.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePorts, type StartedProcess, startProcess } from "../../tests/tools/processes.ts";
import { runCommand } from "../../tests/tools/run-command.ts";
import { backend, socketAddress } from "../one-proxy/bootstrap.ts";
import { startBackend } from "../one-proxy/backend.ts";
import { http1Request } from "../one-proxy/work.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import { onCore } from "../measure/on-core.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";
import { loadCore, requestsPerSecond, startLoad, startProxy, windowOf } from "./loaded-proxy.ts";
import type { Window } from "./steady-load.ts";

/** A p99 of a few hundred requests would be the worst pause of anything on the machine. */
const windowFactor = 1.5;
/** A proxy sees many pushes in its life; in the first few, V8 also compiles the code that takes them up. */
const warmUps = 10;
const warmUpIntervalMs = 500;
const senderProgram = path.join(import.meta.dirname, "push-sender.ts");

interface Round {
  readonly quiet: Window;
  readonly pushed: Window;
  /** From the push to its acknowledgement. */
  readonly appliedMs: number;
}

interface Measured {
  readonly name: string;
  readonly rounds: Round[];
}

interface Running {
  readonly name: string;
  readonly load: StartedProcess;
  readonly sender: StartedProcess;
}

export async function measurePush(options: ScenarioOptions): Promise<ScenarioResult> {
  // What waits for output must not take the proxy's core.
  await runCommand("taskset", ["-a", "-pc", String(loadCore), String(process.pid)], { timeoutMs: 5000 });
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-bench-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const [backendPort] = await freePorts(1);
  stack.use(await startBackend(http1Request, folder, `127.0.0.1:${backendPort}`, loadCore));
  const names = ["Envoy", "Tulle"].filter((name) => options.proxies?.includes(name) ?? true);
  const windowMs = options.seconds * windowFactor * 1000;
  const measured: Measured[] = [];
  for (const name of names) {
    // One after the other: the load of one proxy would be a disturbance of the other.
    await using own = new AsyncDisposableStack();
    const of = { name, folder: path.join(folder, name), backendPort: backendPort!, windowMs, rounds: options.rounds };
    const running = await start(of, own);
    const rounds: Round[] = [];
    await warmUp(running);
    for (let round = 1; round <= options.rounds; round++) {
      const result = await measureOnce(running, round);
      rounds.push(result);
      options.progress(
        `round ${round} ${name}: p99 ${result.quiet.p99Ms.toFixed(2)} ms, with a push ${result.pushed.p99Ms.toFixed(2)} ms, applied after ${result.appliedMs.toFixed(0)} ms`,
      );
    }
    measured.push({ name, rounds });
  }
  return { markdown: table(measured), data: { requestsPerSecond, seconds: options.seconds, measured } };
}

interface StartOptions {
  readonly name: string;
  readonly folder: string;
  readonly backendPort: number;
  readonly windowMs: number;
  readonly rounds: number;
}

async function start(options: StartOptions, stack: AsyncDisposableStack): Promise<Running> {
  const { name, folder, backendPort, windowMs } = options;
  await mkdir(folder);
  const [listenPort, adminPort] = await freePorts(2);
  const xdsPath = path.join(folder, "xds.sock");
  const pushes = warmUps + options.rounds;
  const senderArgs = [senderProgram, xdsPath, listenPort, path.join(folder, "access.log"), pushes].map(String);
  const sender = stack.use(
    await startProcess("chrt", ["--idle", "0", ...onCore(loadCore, process.execPath, senderArgs).flat()], {
      name: "sender",
    }),
  );
  await sender.waitForOutput(/^serves /m, { timeoutMs: 60_000 });
  const bootstrap = path.join(folder, "bootstrap.json");
  await writeFile(bootstrap, JSON.stringify(bootstrapOf(adminPort!, backendPort, xdsPath)));
  await startProxy(name, bootstrap, listenPort!, stack);
  const load = stack.use(await startLoad(listenPort!, windowMs));
  return { name, load, sender };
}

/** Leaves the load at the end of its second window. */
async function warmUp({ load, sender }: Running): Promise<void> {
  for (let push = 1; push <= warmUps; push++) {
    await pushRoutes(sender, push);
    await delay(warmUpIntervalMs);
  }
  await windowOf(load, 1);
}

/** From the push to its acknowledgement, in milliseconds. */
async function pushRoutes(sender: StartedProcess, number: number): Promise<number> {
  sender.kill("SIGUSR2");
  const [, appliedMs] = await sender.waitForOutput(new RegExp(`^push ${number} was taken after (\\S+) ms$`, "m"));
  return Number(appliedMs);
}

/** Windows come in twos: one without a push, one that begins with it. */
async function measureOnce({ load, sender }: Running, round: number): Promise<Round> {
  const quiet = await windowOf(load, 2 * round);
  await load.waitForOutput(new RegExp(`^window ${2 * round + 1} begins$`, "m"));
  const applied = pushRoutes(sender, warmUps + round);
  const pushed = await windowOf(load, 2 * round + 1);
  return { quiet, pushed, appliedMs: await applied };
}

function bootstrapOf(adminPort: number, backendPort: number, xdsPath: string): unknown {
  const xds = "xds-grpc";
  const endpoint = { address: { pipe: { path: xdsPath } } };
  return {
    node: { id: "router~127.0.0.1~bench.istio-system~istio-system.svc.cluster.local", cluster: "bench" },
    admin: { address: socketAddress(adminPort) },
    dynamic_resources: {
      ads_config: {
        api_type: "GRPC",
        transport_api_version: "V3",
        set_node_on_first_message_only: true,
        grpc_services: [{ envoy_grpc: { cluster_name: xds } }],
      },
      lds_config: { ads: {}, resource_api_version: "V3" },
    },
    static_resources: {
      clusters: [
        backend(backendPort),
        {
          name: xds,
          type: "STATIC",
          typed_extension_protocol_options: {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
              "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
          load_assignment: { cluster_name: xds, endpoints: [{ lb_endpoints: [{ endpoint }] }] },
        },
      ],
    },
  };
}

function table(measured: readonly Measured[]): string {
  const rows = measured.map(({ name, rounds }) => {
    const middle = (of: (round: Round) => number): number => median(rounds.map(of));
    return [
      name,
      middle(({ quiet }) => quiet.p50Ms).toFixed(2),
      middle(({ quiet }) => quiet.p99Ms).toFixed(2),
      middle(({ pushed }) => pushed.p99Ms).toFixed(2),
      middle(({ quiet, pushed }) => pushed.p99Ms / quiet.p99Ms).toFixed(2),
      middle(({ appliedMs }) => appliedMs).toFixed(0),
    ];
  });
  return markdownTable(["proxy", "p50 ms", "p99 ms", "p99 ms with a push", "÷ without", "applied after ms"], rows);
}
