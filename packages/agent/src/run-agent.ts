// The agent's life: from its settings to a relay, a bootstrap and a proxy, and back down when the platform says so.
import { isIPv6 } from "node:net";
import path from "node:path";
import { giveBackAtRest } from "@tulle/capture/rest";
import { makeOwnFolder, makeSocketPath, writeSecretFile } from "@tulle/identity/own";
import { type ExpositionFormat, type Logger, Logging, MetricRegistry } from "@tulle/telemetry";
import { systemClock } from "@tulle/timing";
import { bootstrapDocument, bootstrapMessage, hasOwnNetwork, nodeId } from "./bootstrap/bootstrap.ts";
import { encodePeerMetadata, peerMetadata, peerMetadataVariable } from "./bootstrap/peer-metadata.ts";
import type { RunningDataPlane, StartDataPlane } from "./data-plane/data-plane.ts";
import { startEnvoy } from "./data-plane/envoy.ts";
import { startTulle } from "./data-plane/tulle.ts";
import { EndHold } from "./end-hold.ts";
import { startHealthServer } from "./health-server.ts";
import { startIdentity } from "./identity/start-identity.ts";
import type { WorkloadIdentity } from "./identity/workload-identity.ts";
import type { MachineReports } from "./machine/machine-reports.ts";
import { MergedMetrics } from "./scrape/merged-metrics.ts";
import type { RunningNames } from "./names/start-names.ts";
import type { ProbeDesk } from "./probes/probe-desk.ts";
import { type RunningRelay, startRelay } from "./relay/relay.ts";
import { podEnvironment } from "./pod/pod-environment.ts";
import { type AgentSettings, type ParsedSettings, parseSettings } from "./settings.ts";

export interface AgentOptions {
  /** Ends the agent as SIGINT does. Without it the agent listens for SIGTERM and SIGINT itself. */
  readonly stop?: AbortSignal;
  readonly logging?: Logging;
  /** For tests, in place of the proxy that the settings name. */
  readonly startDataPlane?: StartDataPlane;
}

/** `gone`: of a machine that has left, or was removed. */
export const agentExitCodes = { ok: 0, failed: 1, badSettings: 2, gone: 3 } as const;

/**
 * Runs until it is told to stop or its proxy ends; resolves with the process's exit code: 0 after a stop, 2 for
 * settings that make no sense, else the proxy's own, or 1. Problems are logged, not thrown.
 */
export async function runAgent(
  env: Readonly<Record<string, string | undefined>>,
  options: AgentOptions = {},
): Promise<number> {
  const parsed = settingsOf(env);
  const logging = options.logging ?? new Logging({ level: parsed.ok ? parsed.settings.logLevel : "info" });
  const log = logging.logger("agent");
  if (!parsed.ok) {
    for (const problem of parsed.problems) log.critical(problem);
    return agentExitCodes.badSettings;
  }
  for (const problem of parsed.settings.metricExportProblems) {
    log.warning("metrics are not sent as the environment asks", { problem });
  }
  const { signal, release } =
    options.stop === undefined ? stopSignal() : { signal: options.stop, release: () => undefined };
  try {
    return await run(parsed.settings, env, signal, logging, options.startDataPlane);
  } catch (error) {
    log.critical(error instanceof Error ? error.message : String(error));
    return agentExitCodes.failed;
  } finally {
    release();
  }
}

/** The environment of a pod of Kubernetes is filled in from what the kubelet gives it. */
function settingsOf(env: Readonly<Record<string, string | undefined>>): ParsedSettings {
  try {
    return parseSettings(podEnvironment(env));
  } catch (error) {
    return { ok: false, problems: [(error as Error).message] };
  }
}

async function run(
  settings: AgentSettings,
  env: Readonly<Record<string, string | undefined>>,
  told: AbortSignal,
  logging: Logging,
  startDataPlane: StartDataPlane = settings.dataPlane === "envoy" ? startEnvoy : startTulle,
): Promise<number> {
  const log = logging.logger("agent");
  const quit = new AbortController();
  const stop = AbortSignal.any([told, quit.signal]);
  makeOwnFolder(settings.stateFolder);
  const socketPath = makeSocketPath(settings.stateFolder, "xds.sock", env);
  await using identity =
    settings.identity === undefined
      ? undefined
      : await startIdentity({
          settings,
          identity: settings.identity,
          socketPath: makeSocketPath(settings.stateFolder, "sds.sock", env),
          stop,
          logging,
        });
  const ownMetrics = new MetricRegistry();
  await using names = await startDns(settings, ownMetrics, logging);
  using _conntrack = await startConntrackWatch(settings, ownMetrics, logging);
  // Of a machine: aborted when it is to end because nobody knows it any more.
  const gone = new AbortController();
  let reports: MachineReports | undefined;
  const relay = await startRelay({
    socketPath,
    controlPlane: settings.controlPlane,
    ...(identity === undefined ? {} : { identity: identity.workload }),
    ...(names === undefined ? {} : { names: names.subscription }),
    statePath: path.join(settings.stateFolder, "xds-state"),
    nodeId: nodeId(settings),
    // Of a machine that has left, perhaps.
    onRefused: () => reports?.tellNow(),
    onLive: () => reports?.tellNow(),
    gone: gone.signal,
    log: logging.logger("relay"),
  });
  try {
    const document = bootstrapDocument(settings, { xds: socketPath, secrets: identity?.socketPath });
    const bootstrapPath = path.join(settings.stateFolder, "bootstrap.json");
    // Other programs read the file while it may be replaced.
    await writeSecretFile(bootstrapPath, `${JSON.stringify(document, undefined, 2)}\n`);
    const proxyEnv = { ...env, [peerMetadataVariable]: encodePeerMetadata(peerMetadata(settings)) };
    const bootstrap = bootstrapMessage(document);
    let proxy: RunningDataPlane | undefined;
    const endHold = new EndHold({
      taken: () => proxy?.taken() ?? Promise.resolve(undefined),
      leastMs: settings.endHoldMs,
      mostMs: settings.endHoldMostMs,
    });
    await using _health = await startHealthServer({
      // A platform asks at the pod's address, programs of the pod at localhost.
      podAddress: hasOwnNetwork(settings) ? "::" : settings.podAddress,
      leaving: stop,
      probes: await probeDesk(settings),
      onQuit: () => {
        log.info("a program of the pod says that it needs its proxy no more");
        quit.abort();
      },
      drained: () => endHold.ended(),
      dataPlane: () => proxy,
      metrics: new MergedMetrics({
        application: settings.applicationMetrics,
        dataPlane: () => proxy,
        ownMetrics: (format) => (identity?.workload.metrics.render(format) ?? "") + ownPage(ownMetrics, format),
        log,
      }),
    });
    proxy = await startDataPlane({ settings, bootstrap, bootstrapPath, env: proxyEnv, logging });
    log.info("the agent runs", { node: nodeId(settings), dataPlane: settings.dataPlane });
    void giveBackAtRest({ signal: AbortSignal.any([stop, gone.signal]) });
    reports = await startReports(settings, proxy, identity?.workload, relay, gone, log);
    const code = await untilEnd(proxy, { stop, gone: gone.signal, reports }, settings);
    if (gone.signal.aborted) return agentExitCodes.gone;
    if (!stop.aborted) log.critical(`the proxy ended by itself with exit code ${code}`);
    return stop.aborted ? agentExitCodes.ok : code || agentExitCodes.failed;
  } finally {
    await relay.close();
  }
}

/** Undefined where the application has no probes to ask. */
async function probeDesk(settings: AgentSettings): Promise<ProbeDesk | undefined> {
  if (settings.applicationProbes.size === 0) return undefined;
  const { ProbeDesk } = await import("./probes/probe-desk.ts");
  const address = settings.podAddress;
  // From there capture lets the agent through to the application.
  const from = hasOwnNetwork(settings) ? (isIPv6(address) ? "::6" : "127.0.0.6") : undefined;
  return new ProbeDesk(settings.applicationProbes, { address, from });
}

/** Undefined where DNS of the workload is not captured. */
async function startDns(
  settings: AgentSettings,
  metrics: MetricRegistry,
  logging: Logging,
): Promise<RunningNames | undefined> {
  const { dnsAddresses, podNamespace, resolverFile, clusterDomain, ownDomains } = settings;
  if (dnsAddresses.length === 0) return undefined;
  // Most agents answer none, and do without its code.
  const { startNames } = await import("./names/start-names.ts");
  return startNames({
    addresses: dnsAddresses,
    namespace: podNamespace,
    resolverFile,
    serviceDomain: `svc.${clusterDomain}`,
    ownDomains,
    metrics,
    log: logging.logger("dns"),
  });
}

/** Only where the kernel leads the workload's connections through the proxy, and has to remember each. */
async function startConntrackWatch(
  settings: AgentSettings,
  metrics: MetricRegistry,
  logging: Logging,
): Promise<Disposable | undefined> {
  if (!hasOwnNetwork(settings)) return undefined;
  const { watchConntrack } = await import("./conntrack/conntrack-watch.ts");
  return watchConntrack({ log: logging.logger("agent"), metrics, clock: systemClock });
}

/** Without the registry's own, which the proxy has, too. */
function ownPage(metrics: MetricRegistry, format: ExpositionFormat): string {
  const accepts = ({ name }: { readonly name: string }): boolean => /^(?:dns|tulle_agent_conntrack)_/.test(name);
  return [...metrics.pieces({ format, accepts, isPart: true })].join("");
}

/** Of a machine. */
async function startReports(
  settings: AgentSettings,
  proxy: RunningDataPlane,
  identity: WorkloadIdentity | undefined,
  relay: Pick<RunningRelay, "call">,
  gone: AbortController,
  log: Logger,
): Promise<MachineReports | undefined> {
  if (!settings.isMachine || identity === undefined) return undefined;
  const { startMachineReports } = await import("./machine/machine-reports.ts");
  const { controlPlane, podAddress: address, metadata } = settings;
  const appAddress = typeof metadata["APP_ADDRESS"] === "string" ? metadata["APP_ADDRESS"] : "127.0.0.1";
  return startMachineReports({
    identity,
    controlPlane,
    address,
    appAddress,
    onStream: (request) => relay.call(request),
    isProxyReady: () => proxy.isReady(),
    onGone: () => {
      log.warning("this machine has left the mesh, or was removed: it ends");
      gone.abort();
    },
    log,
  });
}

interface Ending {
  readonly stop: AbortSignal;
  readonly gone: AbortSignal;
  readonly reports: MachineReports | undefined;
}

async function untilEnd(
  proxy: RunningDataPlane,
  { stop, gone, reports }: Ending,
  { drainMs, minimumDrainMs }: Pick<AgentSettings, "drainMs" | "minimumDrainMs">,
): Promise<number> {
  const stopped = Promise.withResolvers<void>();
  const onStop = (): void => stopped.resolve();
  const either = AbortSignal.any([stop, gone]);
  if (either.aborted) onStop();
  either.addEventListener("abort", onStop);
  const first = await Promise.race([proxy.ended, stopped.promise.then(() => undefined)]);
  either.removeEventListener("abort", onStop);
  if (first !== undefined) {
    reports?.stop();
    return first;
  }
  await reports?.stopping();
  await proxy.stop({
    leastMs: either.reason === untold || gone.aborted ? Math.min(minimumDrainMs, drainMs) : 0,
    mostMs: drainMs,
  });
  return proxy.ended;
}

/** Why an agent is stopped, where clients of its workload may not know it yet and go on to connect. */
const untold = "SIGTERM";

/**
 * SIGTERM is the word of a platform, which tells the workload's clients at the same time, or later; SIGINT that of who
 * has told them before, and of a person at a terminal. A second one ends the process at once.
 */
function stopSignal(): { readonly signal: AbortSignal; readonly release: () => void } {
  const controller = new AbortController();
  const onSignal = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(agentExitCodes.failed);
    controller.abort(name);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  const release = (): void => {
    process.off("SIGTERM", onSignal);
    process.off("SIGINT", onSignal);
  };
  return { signal: controller.signal, release };
}
