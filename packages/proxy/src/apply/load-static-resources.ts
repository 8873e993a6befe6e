// Puts the bootstrap's own clusters and listeners in place. All of them must be good: Envoy does not start otherwise.
import type { Clock } from "@tulle/timing";
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { contentVersion } from "@tulle/xds";
import { SecretSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import type { ProxyBootstrap } from "../bootstrap/compile-bootstrap.ts";
import type { RuntimeCluster } from "../cluster/runtime-cluster.ts";
import { compileCluster } from "../compile/compile-cluster.ts";
import { type CompiledListener, compileListener } from "../listener/compile-listener.ts";
import { tlsTransports } from "../listener/listener.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import { compileSecret } from "../compile/compile-secret.ts";
import { type CompileProblem, problemText } from "../fields/problems.ts";
import type { ConfigRecords, ReceivedResource } from "../runtime/config-records.ts";
import { countAccepted } from "../runtime/manager-stats.ts";
import type { RuntimeOwner } from "../runtime/runtime-owner.ts";
import type { SecretSlot } from "../tls/secret-slot.ts";
import type { OfProcess, OfWorker } from "../worker/ownership.ts";
import type { AppliedSecrets } from "./applied-secrets.ts";
import { pending, secretWaits, type Wait, Warming } from "./warming.ts";

export interface ConfigTargets {
  readonly scope: CompileScope;
  readonly owner: OfWorker<RuntimeOwner>;
  readonly records: OfProcess<ConfigRecords>;
}

function received<D extends DescMessage>(
  schema: D,
  message: MessageShape<D>,
  versionInfo: string,
): ReceivedResource<MessageShape<D>> {
  const version = contentVersion(toBinary(schema, message));
  return { message, versionInfo, receivedAtMs: Date.now(), contentVersion: version };
}

function lines(
  prefix: string,
  problems: readonly CompileProblem[],
  severity: CompileProblem["severity"] = "error",
): string[] {
  return problems
    .filter((problem) => problem.severity === severity)
    .map((problem) => `${prefix}${problem.place === "" ? ": " : "."}${problemText(problem)}`);
}

export interface StaticResources {
  readonly clusters: ReadonlyMap<string, RuntimeCluster>;
  readonly listeners: readonly CompiledListener[];
  /** Secrets of both. */
  readonly secretSlots: ReadonlySet<SecretSlot>;
  /** One a line, with places; then nothing may be used. */
  readonly problems: readonly string[];
  /** What is ignored, likewise. */
  readonly warnings: readonly string[];
}

/** Compiles everything static; nothing is opened but access logs. */
export function compileStaticResources(bootstrap: ProxyBootstrap, scope: CompileScope): StaticResources {
  const problems: string[] = [];
  const warnings: string[] = [];
  const clusters = new Map<string, RuntimeCluster>();
  const secretSlots = new Set<SecretSlot>();
  for (const [index, message] of bootstrap.secrets.entries()) {
    const prefix = `static_resources.secrets[${index}]`;
    const result = compileSecret(message, scope.environment);
    warnings.push(...lines(prefix, result.ok ? result.warnings : result.problems, "warning"));
    if (result.ok) scope.secretSlot(message.name, { kind: "static" }, 0).put(result.value);
    else problems.push(...lines(prefix, result.problems));
  }
  for (const [index, message] of bootstrap.clusters.entries()) {
    const prefix = `static_resources.clusters[${index}]`;
    if (clusters.has(message.name)) problems.push(`${prefix}: cluster '${message.name}' is there twice`);
    const result = compileCluster(message, scope);
    warnings.push(...lines(prefix, result.ok ? result.warnings : result.problems, "warning"));
    if (!result.ok) {
      problems.push(...lines(prefix, result.problems));
      continue;
    }
    if (message.name === bootstrap.dynamic?.target.clusterName) {
      for (const { name, source } of result.value.secretSlots) {
        if (source.kind === "ads") {
          problems.push(`${prefix}.transport_socket: the secret '${name}' would come by the very stream that needs it`);
        }
      }
    }
    if (result.value.endpointsName !== undefined) problems.push(`${prefix}: EDS is for clusters that come by CDS`);
    clusters.set(message.name, result.value.cluster);
    for (const slot of result.value.secretSlots) secretSlots.add(slot);
  }
  const listeners: CompiledListener[] = [];
  for (const [index, message] of bootstrap.listeners.entries()) {
    const prefix = `static_resources.listeners[${index}]`;
    const result = compileListener(message, scope, { clusterExists: (name) => clusters.has(name) });
    warnings.push(...lines(prefix, result.ok ? result.warnings : result.problems, "warning"));
    if (!result.ok) {
      problems.push(...lines(prefix, result.problems));
      continue;
    }
    if (result.value.routes.size > 0) problems.push(`${prefix}: RDS is for listeners that come by LDS`);
    listeners.push(result.value);
    for (const slot of result.value.secretSlots) secretSlots.add(slot);
  }
  return { clusters, listeners, secretSlots, problems, warnings };
}

export interface LoadedStaticResources {
  /** Listeners that cannot be bound, one a line; none = everything serves, or will once its secrets have come. */
  readonly problems: readonly string[];
  /** Resolves once listeners that wait for secrets serve too. */
  readonly ready: Promise<void>;
  /** What still waits goes on waiting no more. */
  close(): void;
}

/** Of a bootstrap without problems. */
export async function loadStaticResources(
  bootstrap: ProxyBootstrap,
  resources: StaticResources,
  targets: ConfigTargets,
  secrets: AppliedSecrets,
  clock: Clock,
): Promise<LoadedStaticResources> {
  const { scope, owner, records } = targets;
  const { clusters, listeners, secretSlots } = resources;
  for (const message of bootstrap.secrets) {
    records.secrets.of(message.name, true).active = received(SecretSchema, message, "");
  }
  // Not the one that google_grpc makes, which nobody has written.
  for (const message of bootstrap.message.staticResources?.clusters ?? []) {
    records.clusters.of(message.name, true).active = received(ClusterSchema, message, "");
  }
  owner.clusterStats.added.add(clusters.size);
  owner.swap({ clusters });
  await Promise.all([...clusters.values()].map((cluster) => cluster.start()));
  const log = scope.logging.logger("config");
  const { promise: ready, resolve: markReady } = Promise.withResolvers<void>();
  const checks = startHealthChecks(clusters.values(), owner, () => void warming.check());
  const warming = new Warming<CompiledListener>({
    clock,
    log,
    count: owner.listenerStats.warming,
    kind: "listener",
    onWarm: async (name, { listener }) => {
      const reason = await owner.applyListener(listener);
      if (reason !== undefined) log.error("a static listener cannot be bound", { listener: name, reason });
      if (warming.size === 0) markReady();
    },
  });
  const tls = [
    ...[...clusters.values()].flatMap((cluster) => cluster.tlsTransports),
    ...listeners.flatMap(({ listener }) => tlsTransports(listener)),
  ];
  secrets.onChange((changed) => {
    for (const { stats } of tls) stats.onSecrets(changed);
    checks.isOver();
    void warming.check();
  });
  const failures: string[] = [];
  for (const [index, compiled] of listeners.entries()) {
    const { listener, clusterNames } = compiled;
    for (const name of clusterNames) owner.staticClusterNames.add(name);
    records.listeners.of(listener.name, true).active = received(ListenerSchema, bootstrap.listeners[index]!, "");
    const waits = pending([...secretWaits(compiled.secretSlots), checks]);
    if (waits.length > 0) {
      countAccepted(owner.listenerStats, false);
      warming.begin(listener.name, compiled, waits);
      continue;
    }
    const reason = await owner.applyListener(listener);
    if (reason === undefined) countAccepted(owner.listenerStats, false);
    else failures.push(`error adding listener '${listener.name}': ${reason}`);
  }
  if (warming.size === 0) markReady();
  secrets.need("static resources", secretSlots);
  return { problems: failures, ready, close: () => warming.close() };
}

/** Over once each host of these clusters was checked for the first time. */
function startHealthChecks(clusters: Iterable<RuntimeCluster>, owner: RuntimeOwner, onWarm: () => void): Wait {
  const checked = [...clusters].filter(({ healthChecker }) => healthChecker !== undefined);
  // Without its secrets a cluster is not waited for, as it is not without checks; they begin when the secrets come.
  const isReady = ({ tlsTransports: own }: RuntimeCluster): boolean =>
    own.every(({ context: { material } }) => material !== undefined);
  return {
    what: "first health checks",
    timeoutMs: 0,
    isOver: () => {
      const ready = checked.filter(isReady);
      for (const { healthChecker } of ready) healthChecker?.start(owner.healthChecks, onWarm);
      return ready.every(({ healthChecker }) => healthChecker?.isWarm);
    },
  };
}
