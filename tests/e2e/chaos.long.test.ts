// Two replicas of everything under load while processes are killed and stopped. Requests on a killed gateway's own
// connections may fail, and those that nothing tries again while a pod that serves them is killed and still an
// endpoint; everything else succeeds. Streams of gRPC end only where something on their way is killed.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { waitFor } from "../tools/processes.ts";
import {
  catalogAtGateway,
  describeCalls,
  type EndedCall,
  GrpcLoad,
  type GrpcLoadResult,
  isCutOff,
  mixedCalls,
} from "./grpc-load.ts";
import { type DeploymentName, gateway, startReplicatedShop, waitForCalm, workloads } from "./replicated-shop.ts";
import { httpRequest, type ShopInstance } from "./shop-instance.ts";
import {
  describeFailures,
  describePace,
  type FailedRequest,
  type LoadResult,
  seededRandom,
  ShopLoad,
} from "./shop-load.ts";

const seed = 7_061_968;
const minSeconds = 40;
/** So many may hang before nothing more can be sent to those that do not. */
const maxInFlight = 128;
const grpcLoad = { ...mixedCalls, seed, watches: 4 };
/** How long something is stopped, in requests of the load. */
const requestsWhileStopped = 1000;

interface Disturbance {
  readonly deployment: DeploymentName;
  readonly process: "app" | "proxy";
  readonly signal: "SIGKILL" | "SIGSTOP";
}

/** What a disturbance may cost: from the signal to the moment when no proxy sends anything to the pod any more. */
interface Window extends Disturbance {
  readonly fromMs: number;
  /** When the process was gone. */
  readonly goneAtMs: number;
  readonly untilMs: number;
}

/** Everything but productpage is tried again; that shows what retries are good for. */
const untriedTargets = ["/productpage", "/api/v1/products"];
const untried = "productpage";

const rules = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: catalog-again, namespace: shop }
spec:
  hosts: [catalog]
  http:
    - route: [{ destination: { host: catalog, port: { number: 80 } } }]
      retries: { attempts: 5, perTryTimeout: 4s, retryOn: "5xx,reset,connect-failure,refused-stream" }
---
${["catalog", "webapp"]
  .map(
    (host) => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: ${host}, namespace: shop }
spec:
  host: ${host}
  trafficPolicy:
    connectionPool: { tcp: { connectTimeout: 2s } }
    outlierDetection:
      { consecutive5xxErrors: 3, interval: 500ms, baseEjectionTime: 1s, maxEjectionPercent: 50 }
`,
  )
  .join("---")}`;

const unaryRetries =
  'retries: { attempts: 5, perTryTimeout: 4s, retryOn: "unavailable,reset,connect-failure,refused-stream" }';

async function addRules(folder: string): Promise<void> {
  await writeFile(path.join(folder, "again.yaml"), rules);
  await writeFile(path.join(folder, "by-grpc.yaml"), catalogAtGateway(unaryRetries));
  const replace = async (file: string, from: string, to: string): Promise<void> => {
    const text = await readFile(path.join(folder, file), "utf8");
    assert.ok(text.includes(from), `${file} has no ${from}`);
    await writeFile(path.join(folder, file), text.replace(from, to));
  };
  // The sample's own rule would be a second one of that name.
  const catalog = await readFile(path.join(folder, "catalog.yaml"), "utf8");
  await writeFile(path.join(folder, "catalog.yaml"), catalog.slice(0, catalog.lastIndexOf("---")));
  const toWebapp = "            host: webapp\n            port:\n              number: 80";
  const again = '5xx,reset,connect-failure,refused-stream"';
  await replace(
    "webapp.yaml",
    toWebapp,
    `${toWebapp}\n      retries: { attempts: 5, perTryTimeout: 15s, retryOn: "${again} }`,
  );
  const toProducts = "            host: productpage\n            port:\n              number: 9080";
  await replace("productpage.yaml", toProducts, `${toProducts}\n      retries: { attempts: 0 }`);
}

/** Each kind of process in each way, in an order that the seed decides. */
function allDisturbances(): readonly Disturbance[] {
  const random = seededRandom(seed);
  const processes = [
    ...workloads.flatMap((deployment) => [
      { deployment, process: "app" as const },
      { deployment, process: "proxy" as const },
    ]),
    { deployment: gateway, process: "proxy" as const },
  ];
  return processes
    .flatMap((each) => (["SIGKILL", "SIGSTOP"] as const).map((signal) => ({ ...each, signal })))
    .map((disturbance) => ({ disturbance, order: random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ disturbance }) => disturbance);
}

async function disturb(shop: ShopInstance, load: ShopLoad, what: Disturbance, random: () => number): Promise<Window> {
  const pods = (await shop.pods()).filter(({ name }) => name.startsWith(`${what.deployment.name}-`));
  const pod = pods[Math.floor(random() * pods.length)]!;
  const pid = (await shop.processes()).get(`${pod.name} ${what.process}`)!;
  const fromMs = load.nowMs;
  process.kill(pid, what.signal);
  if (what.signal === "SIGSTOP") {
    await load.after(requestsWhileStopped);
    process.kill(pid, "SIGCONT");
    const goneAtMs = load.nowMs;
    await waitForCalm(shop);
    return { ...what, fromMs, goneAtMs, untilMs: load.nowMs };
  }
  await waitFor(() => !isThere(pid), { what: "the end of a killed process" });
  const goneAtMs = load.nowMs;
  await waitFor(async () => (await isOut(shop, pod)) || (await isBack(shop, pod)), {
    what: "every proxy to know that the pod is out",
    timeoutMs: 60_000,
  });
  const untilMs = load.nowMs;
  await waitFor(() => isBack(shop, pod), {
    what: "the killed process to be back",
    timeoutMs: 60_000,
    intervalMs: 100,
    details: () => `${pod.name} ${what.process} ${what.signal}\n${shop.up.output().slice(-3000)}`,
  });
  await waitForCalm(shop);
  return { ...what, fromMs, goneAtMs, untilMs };
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

interface Slice {
  readonly endpoints: readonly {
    readonly addresses: readonly string[];
    readonly conditions: { readonly ready: boolean };
  }[];
}

/** Whether the store has the pod out of its endpoints, and every proxy that answers has heard of that. */
async function isOut(shop: ShopInstance, { address }: { readonly address: string }): Promise<boolean> {
  const slices = await shop.read<{ items: readonly Slice[] }>("/api/v1/resources/EndpointSlice");
  const isReady = slices.items.some(({ endpoints }) =>
    endpoints.some(({ addresses, conditions }) => addresses.includes(address) && conditions.ready),
  );
  if (isReady || (await shop.read<{ pending: boolean }>("/debug/pending")).pending) return false;
  return (await shop.syncRows()).every(({ types }) => Object.values(types).every(({ state }) => state !== "STALE"));
}

async function isBack(
  shop: ShopInstance,
  { name, restarts }: { readonly name: string; readonly restarts: number },
): Promise<boolean> {
  const pod = (await shop.pods()).find((each) => each.name === name);
  return pod !== undefined && pod.ready && pod.restarts > restarts;
}

/** Why the request may have failed; undefined when it may not. */
function excuseFor(failed: FailedRequest, windows: readonly Window[]): string | undefined {
  const { connectedAtMs, endedAtMs, sentAtMs, target, what } = failed;
  const killedGateway = windows.find(
    ({ deployment, signal, fromMs, goneAtMs }) =>
      deployment === gateway &&
      signal === "SIGKILL" &&
      connectedAtMs !== undefined &&
      connectedAtMs <= goneAtMs &&
      endedAtMs >= fromMs,
  );
  if (killedGateway !== undefined && /^(ECONNRESET|EPIPE)/.test(what))
    return "the gateway of its connection was killed";
  const killed = windows.find(
    ({ deployment, signal, fromMs, untilMs }) =>
      deployment.name === untried && signal === "SIGKILL" && sentAtMs <= untilMs && endedAtMs >= fromMs,
  );
  if (killed !== undefined && untriedTargets.includes(target) && what.startsWith("503 "))
    return "it is not tried again";
  return undefined;
}

/**
 * Unary calls are tried again: they fail where their gateway is killed, which is what would try them, or where their
 * answer has begun when its host is killed or stopped; such a try is not made again, and ends with its time. Streams
 * outlast what is stopped.
 */
function isExcused(call: EndedCall, windows: readonly Window[]): boolean {
  const { method, isAnswerBegun, endedAtMs } = call;
  const window = windows.findLast(({ fromMs }) => fromMs <= endedAtMs);
  if (window === undefined || !isCutOff(call)) return false;
  const { deployment, signal } = window;
  if (deployment === gateway) return signal === "SIGKILL";
  if (!deployment.name.startsWith("catalog-")) return false;
  return method === "GetItem" ? isAnswerBegun : signal === "SIGKILL";
}

/** A counter of all proxies, whatever the cluster. */
async function statOf(shop: ShopInstance, name: string): Promise<number> {
  const pages = await Promise.all(
    (await shop.pods()).map(({ address }) => httpRequest(`http://${address}:15000/stats?filter=${name}$`)),
  );
  return pages
    .flatMap(({ body }) => body.split("\n"))
    .map((line) => Number(line.split(": ")[1] ?? 0))
    .reduce((sum, value) => sum + value, 0);
}

test("what is killed or hangs costs no more than its own connections", async (context: TestContext) => {
  await using shop = await startReplicatedShop({ mode: "loopback", proxy: "tulle" }, addRules);
  await waitForCalm(shop);
  const load = await ShopLoad.begin(shop, {
    seed,
    requestsPerSecond: 500,
    maxInFlight,
    minSeconds,
    timeoutMs: 60_000,
  });
  const calls = GrpcLoad.begin(shop, grpcLoad, () => load.nowMs);
  const random = seededRandom(seed + 1);
  const windows: Window[] = [];
  let result: LoadResult;
  let told: GrpcLoadResult;
  try {
    for (const disturbance of allDisturbances()) {
      const [failedBefore, callsBefore] = [load.failed.length, calls.failed.length];
      windows.push(await disturb(shop, load, disturbance, random));
      const { deployment, process: name, signal } = disturbance;
      const seconds = Math.round(load.nowMs / 1000);
      const failures = load.failed.length - failedBefore;
      context.diagnostic(
        `${seconds} s: ${signal} ${deployment.name} ${name}; ${load.sent} requests, ${failures} failed, ${calls.failed.length - callsBefore} calls`,
      );
      await load.caughtUp();
    }
  } finally {
    told = await calls.end();
    result = await load.end();
    context.diagnostic(describePace(result));
    context.diagnostic(describeCalls(told));
  }
  const excuses = Map.groupBy(result.failed, (failed) => excuseFor(failed, windows));
  for (const [excuse, failed] of excuses) context.diagnostic(`${failed.length} failed: ${excuse ?? "no excuse"}`);
  const inexcusable = excuses.get(undefined) ?? [];
  if (inexcusable.length > 0) context.diagnostic(await shop.proxyLogs());
  assert.equal(inexcusable.length, 0, describeFailures({ ...result, failed: inexcusable }));
  assert.ok((excuses.get("the gateway of its connection was killed") ?? []).length <= maxInFlight);
  assert.ok((excuses.get("it is not tried again") ?? []).length <= result.requests / 100);
  assert.deepEqual(
    told.failed.filter((call) => !isExcused(call, windows)),
    [],
    describeCalls(told),
  );
  assert.ok(told.failed.length > 0);
  assert.ok(told.unary > 0 && told.streamsDone > 0);
  const kills = windows.filter(({ signal }) => signal === "SIGKILL").length;
  const restarts = (await shop.pods()).reduce((sum, pod) => sum + pod.restarts, 0);
  assert.equal(restarts, kills);
  const [retries, ejections] = await Promise.all(
    ["upstream_rq_retry_success", "outlier_detection.ejections_enforced_total"].map((name) => statOf(shop, name)),
  );
  context.diagnostic(
    `${result.requests} requests, ${kills} kills, ${retries} retries that succeeded, ${ejections} ejections`,
  );
  assert.ok(retries! > 0 && ejections! > 0);
});
