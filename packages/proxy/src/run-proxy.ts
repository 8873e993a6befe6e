// Starts a whole proxy in this process from a bootstrap: static resources, subscriptions, admin interface. `tulle
// proxy` and the agent both run it.
import { alwaysRedacted } from "./format/redacted-names.ts";
import { hostname } from "node:os";
import { beforeEachSlice, systemClock as streamClock } from "@tulle/timing";
import { type LogLevel, type LogSink, Logging, MetricRegistry } from "@tulle/telemetry";
import { connectAds, xdsMethods } from "@tulle/xds";
import { parseListenDescriptors } from "@tulle/listening";
import type { Bootstrap } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import { AccessLogFiles } from "./access-log/access-log-file.ts";
import { type AdminServer, startAdmin } from "./admin/admin-server.ts";
import { ServerState } from "./admin/server-state.ts";
import type { ProxyBootstrap } from "./bootstrap/compile-bootstrap.ts";
import { BootstrapError } from "./bootstrap/read-bootstrap.ts";
import { tuneCollector } from "./worker/collector.ts";
import { systemDnsLookup } from "./cluster/dns-resolver.ts";
import type { CompileScope } from "./fields/compile-scope.ts";
import { systemClock } from "./worker/clock.ts";
import { DataPath } from "./worker/data-path.ts";
import { CheckQueue } from "./cluster/health-check/check-queue.ts";
import { type DrainTimes, ListenerHost } from "./listener/listener-host.ts";
import { OverloadControl } from "./overload/overload-control.ts";
import { OwnUserHosts } from "./own-user/own-user-hosts.ts";
import { ConfigRecords } from "./runtime/config-records.ts";
import { RuntimeOwner } from "./runtime/runtime-owner.ts";
import { checkBootstrap } from "./bootstrap/check-bootstrap.ts";
import { shownLabels } from "./bootstrap/shown-labels.ts";
import { StatSinks } from "./stat-sinks/stat-sinks.ts";
import { type LoadedStaticResources, loadStaticResources } from "./apply/load-static-resources.ts";
import { servedTlsContexts } from "./apply/served-tls-contexts.ts";
import { SecretSubscription } from "./subscribe/secret-subscription.ts";
import type { OpenStream } from "./subscribe/open-stream.ts";
import { type Subscriber, startSubscriber, withUserAgent } from "./subscribe/subscriber.ts";
import { grpcStreamOpener } from "./upstream/grpc-stream.ts";
import { BatchExporters } from "./upstream/batch-exporter.ts";

export interface ProxyOptions {
  readonly bootstrap: Bootstrap;
  /** Worker threads; one is what exists now, more is said and not done. */
  readonly concurrency?: number;
  /** The process's own logs, when it has some already; else made of `logLevel` and `logSink`. */
  readonly logging?: Logging;
  readonly logLevel?: LogLevel;
  /** Levels of single loggers, such as `{ http: "debug" }`. */
  readonly componentLogLevels?: Readonly<Record<string, LogLevel>>;
  readonly logSink?: LogSink;
  /**
   * What `%ENVIRONMENT(X)%`, `TULLE_LISTEN_FDS` and `TULLE_PEER_METADATA` are read from; `process.env` unless given.
   */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /**
   * Ports, the admin interface's among them, that only programs of this process's own user may connect to: on loopback
   * every user of the machine could speak in the workload's name otherwise.
   */
  readonly ownUserPorts?: ReadonlySet<number>;
  /** `127.16.4.0/22`: at hosts there only programs of this process's own user are talked to, for the same reason. */
  readonly ownUserRange?: string | undefined;
  /** How long connections of a removed listener, or of a proxy that drains, may go on (Envoy: --drain-time-s). */
  readonly drainTimeMs?: number;
  /**
   * How long spans, access logs and metrics of the last moments may hold up the end. Envoy waits for nothing, and loses
   * them.
   */
  readonly lastBatchesMs?: number;
  /** Shown by `/server_info`. */
  readonly commandLineOptions?: Readonly<Record<string, string | number | boolean>>;
}

export interface RunningProxy {
  /** Where the admin interface listens, with its real port; undefined when the bootstrap has none. */
  readonly adminAddress: { readonly ip: string; readonly port: number } | undefined;
  /** Resolves when everything that was subscribed at the start has come (or timed out) and listeners accept. */
  readonly ready: Promise<void>;
  /**
   * Resolves with the process's exit code once the proxy has closed, whether asked by a caller or by `/quitquitquit`.
   */
  readonly ended: Promise<number>;
  /** What `/ready` says: everything of the start has come, and no client is asked to leave. */
  isReady(): boolean;
  /** Real addresses of the listeners, by name. */
  listenerAddresses(): ReadonlyMap<string, readonly { readonly ip: string; readonly port: number }[]>;
  readonly logging: Logging;
  readonly metrics: MetricRegistry;
  /** Asks clients to leave (`Connection: close`); resolves when they have. */
  drain(times: DrainTimes): Promise<void>;
  /** Drains, then closes. */
  stop(times: DrainTimes): Promise<void>;
  /** Closes everything at once; may be called more than once. */
  close(): Promise<void>;
}

/** Loggers that `/logging` lists from the start, whatever the configuration makes use of. */
const loggerNames = [
  "access_log",
  "admin",
  "config",
  "connection",
  "filter",
  "http",
  "http2",
  "jwt",
  "main",
  "pool",
  "rbac",
  "router",
  "upstream",
] as const;

const defaultLastBatchesMs = 1000;

/** Envoy: --drain-time-s. */
const defaultDrainTimeMs = 600_000;

/** @throws {BootstrapError} when the bootstrap cannot be used as a whole. */
export async function runProxy(options: ProxyOptions): Promise<RunningProxy> {
  tuneCollector();
  const parts = makeParts(options, openLogging(options));
  const { bootstrap, targets, secrets, openStream, state, listenerHost, logging, metrics } = parts;
  const begun: BegunParts = {};
  const { ended, close } = ending(parts, begun, options.lastBatchesMs ?? defaultLastBatchesMs);
  const drain = (times: DrainTimes): Promise<void> => {
    state.drain();
    return listenerHost.drain(times).finally(() => (parts.exporters.flush(), void parts.sinks.flush()));
  };
  parts.overload.start();
  try {
    begun.statics = await loadStaticResources(bootstrap, parts.resources, targets, secrets.applied, streamClock);
    if (begun.statics.problems.length > 0) throw new BootstrapError(begun.statics.problems);
    if (bootstrap.adminAddress !== undefined) {
      begun.admin = await startAdmin(bootstrap.adminAddress, {
        ...parts,
        ...targets,
        isForOwnUser: options.ownUserPorts?.has(bootstrap.adminAddress.port) === true,
        drainListeners: () => void drain({ leastMs: 0, mostMs: options.drainTimeMs ?? defaultDrainTimeMs }),
        quit: () => void close(),
      });
    }
  } catch (error) {
    await close();
    throw error;
  }
  begun.subscriber = startSubscriber(bootstrap, targets, secrets, openStream, {
    isInheritedPort: (port) => parts.inheritedDescriptors.has(port),
    onClustersWarm: () => state.clustersAreWarm(),
  });
  const ready = Promise.all([begun.subscriber.ready, begun.statics.ready]).then(() => {
    state.initialized();
    targets.owner.listenerStats.workersStarted.set(1);
    logging.logger("main").info("all dependencies initialized", { listeners: targets.owner.current.listeners.size });
  });
  return {
    adminAddress: begun.admin?.address,
    ready,
    ended,
    isReady: () => state.phase === "LIVE",
    listenerAddresses: () => listenerHost.boundAddresses(),
    logging,
    metrics,
    drain,
    stop: (times) => drain(times).then(close),
    close,
  };
}

function openLogging({ logging: own, logLevel: level, logSink: sink, componentLogLevels = {} }: ProxyOptions): Logging {
  const logging = own ?? new Logging({ ...(level && { level }), ...(sink && { sink }) });
  for (const name of loggerNames) logging.logger(name);
  for (const [name, ofComponent] of Object.entries(componentLogLevels)) logging.logger(name).level = ofComponent;
  return logging;
}

type ProxyParts = ReturnType<typeof makeParts>;

/**
 * All that is there before anything is served.
 * @throws {BootstrapError}
 */
function makeParts(options: ProxyOptions, logging: Logging) {
  const { env: environment = process.env, drainTimeMs = defaultDrainTimeMs, ownUserPorts, ownUserRange } = options;
  const log = logging.logger("main");
  const metrics = new MetricRegistry({
    shownLabels: shownLabels(options.bootstrap),
    onFolded: (metric) => log.warning("a metric has too many label sets: others are counted as other", { metric }),
  });
  const ownUserHosts =
    ownUserRange === undefined ? undefined : new OwnUserHosts(ownUserRange, logging.logger("upstream"));
  const dataPath = new DataPath({ logging, ownUserHosts });
  beforeEachSlice(() => dataPath.turn.flushRound());
  if ((options.concurrency ?? 1) > 1)
    log.warning("one worker thread serves all connections", { asked: options.concurrency });
  const accessLogs = new AccessLogFiles(logging.logger("access_log"), metrics);
  const inheritedDescriptors = parseListenDescriptors(environment["TULLE_LISTEN_FDS"]);
  const listenerHost = new ListenerHost({
    dataPath,
    inheritedDescriptors,
    ...(ownUserPorts === undefined ? {} : { ownUserPorts }),
  });
  const owner = new RuntimeOwner({ listenerHost, healthChecks: new CheckQueue(dataPath), metrics, drainTimeMs });
  const exporters = new BatchExporters(dataPath);
  const { bootstrap, scope, resources, statSinks, problems, warnings } = checkBootstrap(options.bootstrap, (known) =>
    proxyScope(known, owner, accessLogs, { metrics, logging, environment, exporters }),
  );
  if (problems.length > 0) {
    void accessLogs.closeAll();
    throw new BootstrapError(problems);
  }
  for (const problem of warnings) log.warning("a setting of the bootstrap has no effect", { problem });
  const { commandLineOptions = {} } = options;
  const state = new ServerState({ bootstrap, commandLineOptions, startedAtMs: Date.now() });
  const targets = { scope, owner, records: new ConfigRecords() };
  const openStream: OpenStream = (target, service) =>
    grpcStreamOpener(owner.clusterSlots.get(target.clusterName), target, xdsMethods[service].sotw, dataPath);
  const secrets = new SecretSubscription({
    ...targets,
    clock: streamClock,
    connect: connectAds,
    node: withUserAgent(bootstrap.node),
    openStream,
  });
  const overload = new OverloadControl({
    settings: bootstrap.overload,
    state: dataPath.overload,
    metrics,
    clock: dataPath.clock,
    log,
    memoryBytes: () => process.memoryUsage.rss(),
  });
  const sinks = new StatSinks({
    bootstrap,
    settings: statSinks,
    progress: state,
    metrics,
    dataPath,
    tlsContexts: () => servedTlsContexts(owner),
    connectionCount: () => listenerHost.activeConnections,
  });
  const kept = { accessLogs, listenerHost, inheritedDescriptors, exporters, secrets, overload, sinks };
  return { ...kept, bootstrap, resources, targets, openStream, state, logging, metrics };
}

/** What begins with the serving; missing before that. */
interface BegunParts {
  admin?: AdminServer;
  subscriber?: Subscriber;
  statics?: LoadedStaticResources;
}

/** What is begun by then is closed with the parts, once. */
function ending(
  parts: ProxyParts,
  begun: BegunParts,
  lastBatchesMs: number,
): { readonly ended: Promise<number>; readonly close: () => Promise<void> } {
  const { accessLogs, exporters, secrets, overload, sinks, targets } = parts;
  const { promise: ended, resolve: end } = Promise.withResolvers<number>();
  let closing: Promise<void> | undefined;
  const closeAll = async (): Promise<void> => {
    begun.subscriber?.close();
    overload.stop();
    begun.statics?.close();
    secrets.close();
    await targets.owner.stopListeners();
    await atMost(lastBatchesMs, Promise.all([exporters.finish(), sinks.finish()]));
    targets.owner.stopClusters();
    await begun.admin?.close();
    exporters.close();
    await accessLogs.closeAll();
    end(0);
  };
  return { ended, close: () => (closing ??= closeAll()) };
}

async function atMost(limitMs: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, limitMs);
  await Promise.race([work, promise]);
  clearTimeout(timer);
}

/** What is compiled leads to the slots of this proxy. */
function proxyScope(
  { sourceAddress, clusters, node }: ProxyBootstrap,
  owner: RuntimeOwner,
  accessLogs: AccessLogFiles,
  process: Pick<CompileScope, "metrics" | "logging" | "environment" | "exporters">,
): CompileScope {
  return {
    ...process,
    clusterSlot: (name) => owner.clusterSlots.get(name),
    knownClusterSlot: (name) => owner.clusterSlots.known(name),
    routeTableSlot: (name) => owner.routeTableSlots.get(name),
    secretSlot: (name, source, timeoutMs) => owner.secretSlots.get(name, source, timeoutMs),
    openAccessLog: (path) => accessLogs.open(path),
    node: { id: node?.id ?? "", cluster: node?.cluster ?? "", zone: node?.locality?.zone ?? "" },
    lookup: systemDnsLookup,
    random: Math.random,
    clock: systemClock,
    defaultSourceAddress: sourceAddress,
    isOwnListener: (ip, port) => owner.isOwnListener(ip, port),
    staticClusterNames: new Set(clusters.map(({ name }) => name)),
    bootstrapNode: node,
    redactedNames: alwaysRedacted,
    hostname: hostname(),
  };
}
