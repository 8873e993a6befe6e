// Random load for half an hour through two sidecars and their mutual TLS: every protocol, with calls that are given up,
// slow readers, applications that end and begin again, and changes of configuration. No byte is wrong, and at the end
// each proxy holds what it held after a first minute of the same.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { seededRandom } from "../e2e/shop-load.ts";
import { MeshedProxies } from "../tools/meshed-proxies.ts";
import { waitFor } from "../tools/processes.ts";
import { soakMinutes } from "../tools/soak-minutes.ts";
import { EchoApplications, ports, type Protocol } from "./echo-applications.ts";
import { type Holdings, holdingsOf } from "./inspected-process.ts";
import { type CallKind, callKinds, type Ending, RandomCalls } from "./random-calls.ts";

const seed = 20_251_124;
const inspectorPort = 9229;
const outboundPort = 15_007;
const callersOfEach = 2;
const callsPerSecond = 100;
const pushEveryMs = 5000;
const restartEveryMs = 10_000;
/** Code is compiled and tables have grown by then. */
const warmUpMs = 60_000;
/** What a heap may differ by after a collection: caches by content, such as HPACK's and certificates' sessions. */
const maxHeapGrowthBytes = 8 * 1024 * 1024;
/** Connections of this test to the admin page and the inspector. */
const maxDescriptorGrowth = 2;
/** A call that begins so soon after an application is back may meet a connection of the one before. */
const excusedForMs = 1000;

const protocolOf: Readonly<Record<CallKind, Protocol>> = {
  "http/1.1": "http1",
  websocket: "http1",
  "http/2": "http2",
  "grpc unary": "grpc",
  "grpc stream": "grpc",
};

/** Pushed in turn. Connections that nobody uses end soon, so that nothing is left at rest. */
const manifests = [
  { timeout: "30s", attempts: 1, connectionPool: "http: { idleTimeout: 3s }" },
  { timeout: "40s", attempts: 2, connectionPool: "http: { idleTimeout: 4s, maxRequestsPerConnection: 20 }" },
  { timeout: "35s", attempts: 1, connectionPool: "http: { idleTimeout: 4s, maxConcurrentStreams: 2 }" },
  {
    timeout: "30s",
    attempts: 3,
    connectionPool:
      "tcp: { maxConnections: 100 }, http: { idleTimeout: 3s, http2KeepAlive: { interval: 2s, timeout: 10s } }",
  },
].map(
  ({ timeout, attempts, connectionPool }) => `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: { name: default, namespace: shop }
spec: { mtls: { mode: STRICT } }
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: server, namespace: shop }
spec:
  host: server
  trafficPolicy: { connectionPool: { ${connectionPool} } }
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: server, namespace: shop }
spec:
  hosts: [server]
  http:
${Object.values(ports)
  .map(
    (port) => `    - match: [{ port: ${port} }]
      route: [{ destination: { host: server, port: { number: ${port} } } }]
      timeout: ${timeout}
      retries: { attempts: ${attempts}, retryOn: connect-failure }`,
  )
  .join("\n")}
`,
);

interface Restart {
  readonly protocol: Protocol;
  readonly atMs: number;
  /** Undefined while it is away. */
  backAtMs?: number;
}

class Load {
  readonly endings = new Map<string, number>();
  readonly bad: string[] = [];
  readonly restarts: Restart[] = [];
  pushes = 0;
  readonly #mesh: MeshedProxies;
  readonly #applications: EchoApplications;
  readonly #random = seededRandom(seed);

  constructor(mesh: MeshedProxies, applications: EchoApplications) {
    this.#mesh = mesh;
    this.#applications = applications;
  }

  /** Until all calls have ended. */
  async run(durationMs: number): Promise<void> {
    const until = performance.now() + durationMs;
    const isOver = (): boolean => performance.now() >= until;
    const every = async (intervalMs: number, work: () => Promise<unknown>): Promise<void> => {
      while (!isOver()) {
        await pause(Math.min(intervalMs, Math.max(0, until - performance.now())));
        if (!isOver()) await work();
      }
    };
    const callers = callKinds.flatMap((kind) =>
      Array.from({ length: callersOfEach }, () => this.#caller(kind, isOver)),
    );
    await Promise.all([
      ...callers,
      every(pushEveryMs, () => this.#mesh.setManifests(manifests[++this.pushes % manifests.length]!)),
      every(restartEveryMs, () => this.#restart()),
    ]);
  }

  async #caller(kind: CallKind, isOver: () => boolean): Promise<void> {
    const address = `${this.#mesh.pod("client").address}:${outboundPort}`;
    using calls = new RandomCalls(address, "server", this.#random);
    const intervalMs = (1000 * callKinds.length * callersOfEach) / callsPerSecond;
    while (!isOver()) {
      const fromMs = performance.now();
      this.#take(kind, await calls.call(kind), fromMs);
      // Calls a second are what this is about; nothing is waited for.
      await pause(Math.max(0, intervalMs - (performance.now() - fromMs)));
    }
  }

  async #restart(): Promise<void> {
    const protocols = Object.keys(ports) as Protocol[];
    const protocol = protocols[this.restarts.length % protocols.length]!;
    const restart: Restart = { protocol, atMs: performance.now() };
    this.restarts.push(restart);
    await this.#applications.restart(protocol);
    restart.backAtMs = performance.now();
  }

  #take(kind: CallKind, ending: Ending, fromMs: number): void {
    const isFailed = ending.startsWith("failed");
    const told = `${kind} ${isFailed ? "met the end of its application" : ending}`;
    const toMs = performance.now();
    const isExcused =
      isFailed &&
      this.restarts.some(
        ({ protocol, atMs, backAtMs = toMs }) =>
          protocol === protocolOf[kind] && atMs <= toMs && fromMs <= backAtMs + excusedForMs,
      );
    if (isFailed ? !isExcused : ending.startsWith("wrong")) {
      this.bad.push(`${kind}: ${ending}, ${Math.round(toMs - fromMs)} ms`);
    } else {
      this.endings.set(told, (this.endings.get(told) ?? 0) + 1);
    }
  }
}

const podNames = ["client", "server"] as const;

test("no byte is wrong, and nothing is left, after long random load", async (context) => {
  let applications: EchoApplications | undefined;
  await using mesh = await MeshedProxies.start({
    pods: podNames.map((name) => ({ name, namespace: "shop", proxy: "tulle" as const })),
    ports: Object.values(ports),
    protocols: { [ports.http2]: "http2", [ports.grpc]: "grpc" },
    manifests: manifests[0]!,
    startApplication: async ({ name, appAddress }) => {
      const started = new EchoApplications(appAddress);
      if (name === "client") return started;
      for (const protocol of Object.keys(ports) as Protocol[]) await started.start(protocol);
      applications = started;
      return started;
    },
    wrapCommand: ({ address }, command, args) => [command, [`--inspect=${address}:${inspectorPort}`, ...args]],
  });
  const load = new Load(mesh, applications!);
  const holdings = (): Promise<readonly Holdings[]> => holdingsAtRest(mesh);
  await load.run(warmUpMs);
  const before = await holdings();
  await load.run(soakMinutes() * 60_000);
  const after = await holdings();
  const calls = [...load.endings].sort(([a], [b]) => a.localeCompare(b)).map(([what, count]) => `${count} × ${what}`);
  context.diagnostic(`${calls.join("; ")}; ${load.pushes} pushes, ${load.restarts.length} restarts`);
  for (const [index, name] of podNames.entries()) {
    context.diagnostic(`${name}: ${JSON.stringify(before[index])} then ${JSON.stringify(after[index])}`);
  }
  assert.deepEqual(load.bad.slice(0, 20), [], `${load.bad.length} calls`);
  for (const kind of callKinds) assert.ok((load.endings.get(`${kind} ok`) ?? 0) > 0, kind);
  for (const [index, name] of podNames.entries()) {
    const [first, last] = [before[index]!, after[index]!];
    assert.ok(last.heapBytes - first.heapBytes <= maxHeapGrowthBytes, `${name}: heap`);
    assert.ok(last.descriptors - first.descriptors <= maxDescriptorGrowth, `${name}: descriptors`);
  }
});

/** Once both proxies are at rest: no stream, no connection, no byte that is held. */
async function holdingsAtRest(mesh: MeshedProxies): Promise<readonly Holdings[]> {
  return Promise.all(
    podNames.map(async (name) => {
      let left: readonly string[] = [];
      const isAtRest = async (): Promise<boolean> => {
        left = (await mesh.admin(name, "/stats/prometheus")).split("\n").filter((line) => isHeld(line));
        return left.length === 0;
      };
      await waitFor(isAtRest, { what: `${name} to be at rest`, timeoutMs: 120_000, details: () => left.join("\n") });
      return holdingsOf(`${mesh.pod(name).address}:${inspectorPort}`, mesh.processId(name));
    }),
  );
}

/** Whether a line of a proxy's statistics tells of something open or buffered that a client's load could have left. */
function isHeld(line: string): boolean {
  // One connection of HTTP/2 to an application is kept for an hour without a stream.
  if (/^envoy_cluster_upstream_cx_active\{envoy_cluster_name="inbound\|\d+\|\|"\} 1$/.test(line)) return false;
  const isOwn = /admin|xds-grpc|sds-grpc/.test(line);
  return !isOwn && /^envoy_\w*((rq|cx|streams)_(\w+_)?active|_buffered)(\{.*\})? [1-9]/.test(line);
}
