// What a push of ten thousand routes does to the requests that run meanwhile: 2,000 a second, and the p99 of a few seconds with
// one push in them against that of as many seconds before, without.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type AdsConnection, encodeResource, serveAds } from "@tulle/xds";
import { ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { messageFromJson } from "@tulle/xds/json";
import { envoyPath } from "../../tests/tools/envoy-path.ts";
import { freePorts, type StartedProcess, startProcess, waitFor } from "../../tests/tools/processes.ts";
import { runCommand } from "../../tests/tools/run-command.ts";
import { backend, listener, socketAddress } from "../http1/bootstrap.ts";
import { startBackend } from "../http1/contestants.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import { onCore } from "../measure/on-core.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";
import { routeName, routes } from "./routes.ts";
import type { Window } from "./steady-load.ts";

const proxyCore = 0;
const loadCore = 1;
const requestsPerSecond = 2000;
/** A p99 of a few hundred requests would be the worst pause of anything on the machine. */
const windowFactor = 1.5;
const program = path.join(import.meta.dirname, "steady-load.ts");
const cli = path.resolve(import.meta.dirname, "../../packages/cli/bin/tulle.mjs");

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

type Push = ReturnType<typeof routes>;

interface Running {
  readonly name: string;
  readonly load: StartedProcess;
  readonly connection: AdsConnection;
}

export async function measurePush(options: ScenarioOptions): Promise<ScenarioResult> {
  // The sender of the push is this process: it must not take the proxy's core.
  await runCommand("taskset", ["-a", "-pc", String(loadCore), String(process.pid)], { timeoutMs: 5000 });
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-bench-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const [backendPort] = await freePorts(1);
  stack.use(await startBackend(folder, `127.0.0.1:${backendPort}`, loadCore));
  const names = ["Envoy", "Tulle"].filter((name) => options.proxies?.includes(name) ?? true);
  const windowMs = options.seconds * windowFactor * 1000;
  // Made beforehand: to make one takes longer than to send it.
  const pushes = Array.from({ length: options.rounds + 1 }, (_, index) => routes(index + 1));
  const measured: Measured[] = [];
  for (const name of names) {
    // One after the other: the load of one proxy would be a disturbance of the other.
    await using own = new AsyncDisposableStack();
    const running = await start(name, path.join(folder, name), backendPort!, windowMs, own);
    const rounds: Round[] = [];
    await measureOnce(running, 0, pushes[0]!);
    for (let round = 1; round <= options.rounds; round++) {
      const result = await measureOnce(running, round, pushes[round]!);
      rounds.push(result);
      options.progress(
        `round ${round} ${name}: p99 ${result.quiet.p99Ms.toFixed(2)} ms, with a push ${result.pushed.p99Ms.toFixed(2)} ms, applied after ${result.appliedMs.toFixed(0)} ms`,
      );
    }
    measured.push({ name, rounds });
  }
  return { markdown: table(measured), data: { requestsPerSecond, seconds: options.seconds, measured } };
}

async function start(
  name: string,
  folder: string,
  backendPort: number,
  windowMs: number,
  stack: AsyncDisposableStack,
): Promise<Running> {
  await mkdir(folder);
  const [listenPort, adminPort] = await freePorts(2);
  const connected = Promise.withResolvers<AdsConnection>();
  const xdsPath = path.join(folder, "xds.sock");
  const server = await serveAds({
    address: { path: xdsPath },
    handlers: {
      onConnect: (connection) => {
        connection.set("LDS", listeners(listenPort!, path.join(folder, "access.log")));
        connection.set("RDS", routes(0));
        connected.resolve(connection);
      },
      onSubscribe: () => undefined,
      onDisconnect: () => undefined,
    },
  });
  stack.defer(() => server.close());
  const bootstrap = path.join(folder, "bootstrap.json");
  await writeFile(bootstrap, JSON.stringify(bootstrapOf(adminPort!, backendPort, xdsPath)));
  const [command, args] =
    name === "Tulle"
      ? [process.execPath, [cli, "proxy", "-c", bootstrap, "--concurrency", "1", "-l", "warning"]]
      : [await envoyPath(), ["-c", bootstrap, "--concurrency", "1", "--disable-hot-restart", "-l", "warning"]];
  const proxy = stack.use(await startProcess(...onCore(proxyCore, command, args), { name }));
  const url = `http://127.0.0.1:${listenPort}/api/catalog`;
  await waitFor(async () => (await fetch(url)).ok, {
    what: `${name} to answer`,
    timeoutMs: 30_000,
    details: () => proxy.output(),
  });
  const loadArgs = [program, listenPort, requestsPerSecond, windowMs].map(String);
  const load = stack.use(await startProcess(...onCore(loadCore, process.execPath, loadArgs), { name: "load" }));
  return { name, load, connection: await connected.promise };
}

/** Windows come in twos: one without a push, one that begins with it. */
async function measureOnce({ name, load, connection }: Running, round: number, push: Push): Promise<Round> {
  const quiet = await windowOf(load, 2 * round);
  await load.waitForOutput(new RegExp(`^window ${2 * round + 1} begins$`, "m"));
  const startMs = performance.now();
  connection.set("RDS", push);
  const { version } = push.get(routeName)!;
  await waitFor(() => connection.status().get("RDS")?.ackedVersion === version, {
    what: `${name} to take the push`,
    timeoutMs: 30_000,
    details: () => JSON.stringify(connection.status().get("RDS")),
  });
  const appliedMs = performance.now() - startMs;
  return { quiet, pushed: await windowOf(load, 2 * round + 1), appliedMs };
}

async function windowOf(load: StartedProcess, number: number): Promise<Window> {
  const [, json] = await load.waitForOutput(new RegExp(`^window ${number} (\\{.*\\})$`, "m"), { timeoutMs: 60_000 });
  return JSON.parse(json!) as Window;
}

function listeners(port: number, accessLogFile: string): Push {
  const rds = { config_source: { ads: {}, resource_api_version: "V3" }, route_config_name: routeName };
  const read = messageFromJson(ListenerSchema, listener(port, accessLogFile, { rds }));
  if (!read.ok) throw new Error(read.problems[0]?.message);
  return new Map([[read.message.name, encodeResource(ListenerSchema, read.message)]]);
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
