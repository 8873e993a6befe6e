// Two replicas of everything under load while it changes: configuration, pods, proxies, the control plane. No
// request fails, nor a unary call or a short stream of gRPC; streams that stay open end where what carries them is
// replaced, and nowhere else.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { test, type TestContext } from "node:test";
import type { Kind } from "@tulle/config";
import { waitFor } from "../tools/processes.ts";
import { catalogAtGateway, describeCalls, GrpcLoad, type GrpcLoadResult, isCutOff, mixedCalls } from "./grpc-load.ts";
import {
  type DeploymentName,
  deployments,
  gateway,
  replicas,
  rollOut,
  ShopWriter,
  startReplicatedShop,
  waitForCalm,
  workloads,
} from "./replicated-shop.ts";
import { type MeshVariant, variantName } from "./mesh-variant.ts";
import type { Pod, ShopInstance } from "./shop-instance.ts";
import { describeFailures, describePace, type LoadResult, seededRandom, ShopLoad } from "./shop-load.ts";

const seed = 20_240_611;
const changeCount = 30;
/** What two cores carry while pods of the variant start beside it. */
const paceOf = ({ mode, proxy }: MeshVariant): number => (mode === "loopback" && proxy === "tulle" ? 300 : 200);
/** A single stream from the server stays open, and is waited for. */
const grpcLoad = { ...mixedCalls, seed, watches: 1 };

const istio = "networking.istio.io/v1";
const security = "security.istio.io/v1";
const shopNamespace = "shop";

type Change = { readonly apply: unknown } | { readonly remove: readonly [kind: Kind, namespace: string, name: string] };

/** One of the kinds that shape traffic, as a person may write it while requests run. */
function anyChange(random: () => number): Change {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  const changes: readonly (() => Change)[] = [
    () => ({ apply: catalogRoutes(random) }),
    () => ({ remove: ["VirtualService", shopNamespace, "catalog"] }),
    () => ({ apply: catalogRule(pick) }),
    () => ({ apply: peerAuthentication(shopNamespace, pick(["STRICT", "PERMISSIVE"])) }),
    () => ({ apply: peerAuthentication("tulle-system", pick(["STRICT", "PERMISSIVE"])) }),
    () => ({ remove: ["PeerAuthentication", shopNamespace, "default"] }),
    () => ({ apply: callersOfCatalog(pick(["GET", "*"])) }),
    () => ({ remove: ["AuthorizationPolicy", shopNamespace, "catalog-callers"] }),
    () => ({ apply: webappRoutes(`change-${Math.floor(random() * 1000)}`) }),
  ];
  return pick(changes)();
}

function catalogRoutes(random: () => number): unknown {
  const weight = Math.floor(random() * 101);
  const destination = (subset: string, share: number): unknown => ({
    destination: { host: "catalog", subset: `version-${subset}`, port: { number: 80 } },
    weight: share,
  });
  return {
    apiVersion: istio,
    kind: "VirtualService",
    metadata: { name: "catalog", namespace: shopNamespace },
    spec: {
      hosts: ["catalog"],
      http: [
        { match: [{ headers: { "x-dark-launch": { exact: "v2" } } }], route: [destination("v2", 100)] },
        {
          route: [destination("v1", weight), destination("v2", 100 - weight)],
          timeout: "15s",
          retries: { attempts: 1 + Math.floor(random() * 3), perTryTimeout: "10s", retryOn: "5xx,connect-failure" },
        },
      ],
    },
  };
}

function catalogRule(pick: <T>(values: readonly T[]) => T): unknown {
  const trafficPolicy = pick([
    undefined,
    { loadBalancer: { simple: "RANDOM" } },
    { loadBalancer: { simple: "ROUND_ROBIN" } },
    { connectionPool: { http: { maxRequestsPerConnection: pick([1, 10, 1000]) } } },
    { connectionPool: { tcp: { maxConnections: 200 }, http: { idleTimeout: "30s" } } },
    { outlierDetection: { consecutive5xxErrors: 5, interval: "1s", baseEjectionTime: "1s" } },
  ]);
  return {
    apiVersion: istio,
    kind: "DestinationRule",
    metadata: { name: "catalog", namespace: shopNamespace },
    spec: {
      host: "catalog",
      trafficPolicy,
      subsets: ["v1", "v2"].map((version) => ({ name: `version-${version}`, labels: { version } })),
    },
  };
}

function peerAuthentication(namespace: string, mode: string): unknown {
  return {
    apiVersion: security,
    kind: "PeerAuthentication",
    metadata: { name: "default", namespace },
    spec: { mtls: { mode } },
  };
}

function callersOfCatalog(method: string): unknown {
  const accounts = ["shop/sa/webapp", "shop/sa/productpage", "tulle-system/sa/tulle-ingressgateway"];
  const principals = accounts.map((account) => `cluster.local/ns/${account}`);
  return {
    apiVersion: security,
    kind: "AuthorizationPolicy",
    metadata: { name: "catalog-callers", namespace: shopNamespace },
    spec: {
      selector: { matchLabels: { app: "catalog" } },
      action: "ALLOW",
      rules: [{ from: [{ source: { principals } }], to: [{ operation: { methods: [method, "POST"] } }] }],
    },
  };
}

function webappRoutes(header: string): unknown {
  return {
    apiVersion: istio,
    kind: "VirtualService",
    metadata: { name: "webapp", namespace: shopNamespace },
    spec: {
      hosts: ["*"],
      gateways: ["shop-gateway"],
      http: [
        {
          route: [{ destination: { host: "webapp", port: { number: 80 } } }],
          headers: { response: { set: { "x-change": header } } },
        },
      ],
    },
  };
}

/** Ends the control plane and waits until another one serves every proxy. */
async function restartControlPlane(shop: ShopInstance, signal: NodeJS.Signals): Promise<void> {
  const pidOf = async (): Promise<number | undefined> => (await shop.processes()).get("control-plane");
  const before = (await pidOf())!;
  process.kill(before, signal);
  await waitFor(async () => ![undefined, before].includes(await pidOf()), {
    what: "another control plane",
    timeoutMs: 30_000,
    intervalMs: 100,
  });
  await waitForCalm(shop);
}

/** As a person, or a machine that shuts down, may end one proxy past its supervisor. */
async function terminateProxy(shop: ShopInstance, { name }: DeploymentName): Promise<void> {
  const pod = (await shop.pods()).find((each) => each.name.startsWith(`${name}-`))!;
  process.kill((await shop.processes()).get(`${pod.name} proxy`)!, "SIGTERM");
  await waitFor(
    async () => (await shop.pods()).some((each) => each.name === pod.name && each.restarts > pod.restarts),
    {
      what: "another run of the proxy",
      timeoutMs: 60_000,
      intervalMs: 100,
    },
  );
  await waitForCalm(shop);
}

async function changeConfiguration(shop: ShopInstance, load: ShopLoad): Promise<void> {
  const random = seededRandom(seed);
  const writer = ShopWriter.of(shop);
  for (let count = 0; count < changeCount && !load.isEnding; count += 1) {
    const change = anyChange(random);
    if ("apply" in change) await writer.apply(change.apply);
    else await writer.delete(...change.remove);
    await load.after(Math.floor(random() * 1200));
  }
}

/** What only serves, what serves and calls, and what stands at the edge: the others go the same ways. */
const replaced: readonly DeploymentName[] = [
  ...workloads.filter(({ name }) => /^(catalog-v1|webapp)$/.test(name)),
  gateway,
];

const terminated = replaced.filter(({ name }) => name !== "catalog-v1");

/** What is replaced, and since when. */
interface Replacement {
  readonly what: string;
  readonly fromMs: number;
}

/**
 * Pods of each sort are replaced, their proxies started again, and the control plane twice. Starts take from the load;
 * it catches up after each.
 */
async function replaceEachSort(
  shop: ShopInstance,
  load: ShopLoad,
  replacements: Replacement[],
  tell: (what: string) => void,
): Promise<void> {
  const replace = async (what: string, work: () => Promise<void>): Promise<void> => {
    await load.caughtUp();
    replacements.push({ what, fromMs: load.nowMs });
    await work();
    tell(what);
  };
  for (const deployment of replaced) {
    await replace(`${deployment.name} rolled`, () => rollOut(shop, deployment));
  }
  await replace("control plane restarted", () => restartControlPlane(shop, "SIGTERM"));
  for (const deployment of replaced) {
    await replace(`proxies of ${deployment.name} restarted`, () => rollOut(shop, deployment, "proxy"));
  }
  for (const deployment of terminated) {
    await replace(`a proxy of ${deployment.name} terminated`, () => terminateProxy(shop, deployment));
  }
  await replace("control plane killed", () => restartControlPlane(shop, "SIGKILL"));
  await load.caughtUp();
}

/** Nothing was left out of what was offered, and nothing failed. */
function assertAllAnswered(context: TestContext, result: LoadResult): void {
  context.diagnostic(describePace(result));
  assert.equal(result.failed.length, 0, describeFailures(result));
  assert.equal(result.requests, result.offered);
}

/** Of calls as well; what stayed open has ended where the gateway or the catalog was replaced. */
function assertCallsAnswered(
  context: TestContext,
  { unary, streamsDone, failed, ...told }: GrpcLoadResult,
  replacements: readonly Replacement[],
): void {
  const described = describeCalls({ unary, streamsDone, failed, ...told });
  context.diagnostic(described);
  const isExplained = (endedAtMs: number): boolean =>
    /gateway|catalog/.test(replacements.findLast(({ fromMs }) => fromMs <= endedAtMs)?.what ?? "");
  assert.deepEqual(
    failed.filter((call) => call.method !== "Watch" || !isCutOff(call) || !isExplained(call.endedAtMs)),
    [],
    described,
  );
  assert.ok(unary > 0 && streamsDone > 0);
}

/** Of what was rolled no pod of before is there, and each proxy was started again as often as it was asked for. */
function assertReplaced(before: readonly Pod[], after: readonly Pod[]): void {
  const of = (pods: readonly Pod[], deployment: DeploymentName): readonly Pod[] =>
    pods.filter(({ name }) => name.startsWith(`${deployment.name}-`));
  for (const deployment of deployments) {
    const isReplaced = replaced.includes(deployment);
    const stayed = of(after, deployment).filter(({ name }) => before.some((pod) => pod.name === name));
    assert.equal(stayed.length, isReplaced ? 0 : replicas, `pods of ${deployment.name} of before`);
    assert.deepEqual(
      of(after, deployment)
        .map(({ restarts }) => restarts)
        .sort((a, b) => a - b),
      isReplaced ? [1, terminated.includes(deployment) ? 2 : 1] : [0, 0],
      `starts of ${deployment.name}`,
    );
  }
}

const addGrpc = (folder: string): Promise<void> => writeFile(path.join(folder, "by-grpc.yaml"), catalogAtGateway());

/** The test of a variant. */
export function changeTests(variant: MeshVariant): void {
  test(`no request fails on ${variantName(variant)} while everything changes`, (context: TestContext) =>
    changeEverything(context, variant));
}

async function changeEverything(context: TestContext, variant: MeshVariant): Promise<void> {
  await using shop = await startReplicatedShop(variant, addGrpc);
  const podsBefore = await shop.pods();
  const load = await ShopLoad.begin(shop, {
    seed,
    requestsPerSecond: paceOf(variant),
    maxInFlight: 96,
    minSeconds: 60,
    timeoutMs: 60_000,
  });
  const calls = GrpcLoad.begin(shop, grpcLoad, () => load.nowMs);
  const replacements: Replacement[] = [];
  const tell = (what: string): void => {
    context.diagnostic(
      `${Math.round(load.nowMs / 1000)} s: ${what}; ${load.sent} requests, ${load.failed.length} failed`,
    );
  };
  try {
    await Promise.all([changeConfiguration(shop, load), replaceEachSort(shop, load, replacements, tell)]);
  } finally {
    const [result, told] = await Promise.all([load.end(), calls.end()]);
    tell("end");
    if (result.failed.length > 0) context.diagnostic(await shop.proxyLogs());
    assertAllAnswered(context, result);
    assertCallsAnswered(context, told, replacements);
  }
  assertReplaced(podsBefore, await shop.pods());
  // A stock Envoy does not count so.
  if (variant.proxy === "envoy") return;
  const counts = await shop.requestCounts();
  const of = (policy: string): number =>
    counts
      .filter(({ labels }) => labels["reporter"] === "destination" && labels["connection_security_policy"] === policy)
      .reduce((sum, { value }) => sum + value, 0);
  context.diagnostic(`${of("mutual_tls")} requests over mutual TLS counted by the proxies that are left`);
  assert.ok(of("mutual_tls") > 0);
  assert.equal(of("none"), 0);
}
