// Puts the bootstrap's own clusters and listeners in place. All of them must be good: Envoy does not start otherwise.
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { contentVersion } from "@tulle/xds";
import type { ProxyBootstrap } from "../bootstrap/compile-bootstrap.ts";
import type { RuntimeCluster } from "../cluster/runtime-cluster.ts";
import { compileCluster } from "../compile/compile-cluster.ts";
import { type CompiledListener, compileListener } from "../compile/compile-listener.ts";
import type { CompileScope } from "../compile/compile-scope.ts";
import { type CompileProblem, problemText } from "../compile/problems.ts";
import type { ConfigRecords, ReceivedResource } from "../runtime/config-records.ts";
import type { RuntimeOwner } from "../runtime/runtime-owner.ts";

export interface ConfigTargets {
  readonly scope: CompileScope;
  readonly owner: RuntimeOwner;
  readonly records: ConfigRecords;
}

function received<D extends DescMessage>(
  schema: D,
  message: MessageShape<D>,
  versionInfo: string,
): ReceivedResource<MessageShape<D>> {
  const version = contentVersion(toBinary(schema, message));
  return { message, versionInfo, receivedAtMs: Date.now(), contentVersion: version };
}

function lines(prefix: string, problems: readonly CompileProblem[]): string[] {
  return problems
    .filter((problem) => problem.severity === "error")
    .map((problem) => `${prefix}${problem.place === "" ? ": " : "."}${problemText(problem)}`);
}

export interface StaticResources {
  readonly clusters: ReadonlyMap<string, RuntimeCluster>;
  readonly listeners: readonly CompiledListener[];
  /** One a line, with places; then nothing may be used. */
  readonly problems: readonly string[];
}

/** Compiles everything static; nothing is opened but access logs. */
export function compileStaticResources(bootstrap: ProxyBootstrap, scope: CompileScope): StaticResources {
  const log = scope.logging.logger("config");
  const problems: string[] = [];
  const clusters = new Map<string, RuntimeCluster>();
  for (const [index, message] of bootstrap.clusters.entries()) {
    const prefix = `static_resources.clusters[${index}]`;
    if (clusters.has(message.name)) problems.push(`${prefix}: cluster '${message.name}' is there twice`);
    // The cluster of the xDS stream is gRPC's affair; no route can choose it.
    if (message.name === bootstrap.dynamic?.clusterName) continue;
    const result = compileCluster(message, scope);
    if (!result.ok) {
      problems.push(...lines(prefix, result.problems));
      continue;
    }
    for (const { place, message: words } of result.warnings) log.warning(words, { place: `${prefix}.${place}` });
    if (result.value.endpointsName !== undefined) problems.push(`${prefix}: EDS is for clusters that come by CDS`);
    clusters.set(message.name, result.value.cluster);
  }
  const listeners: CompiledListener[] = [];
  for (const [index, message] of bootstrap.listeners.entries()) {
    const prefix = `static_resources.listeners[${index}]`;
    const result = compileListener(message, scope, { clusterExists: (name) => clusters.has(name) });
    if (!result.ok) {
      problems.push(...lines(prefix, result.problems));
      continue;
    }
    for (const { place, message: words } of result.warnings) log.warning(words, { place: `${prefix}.${place}` });
    if (result.value.routeNames.size > 0) problems.push(`${prefix}: RDS is for listeners that come by LDS`);
    listeners.push(result.value);
  }
  return { clusters, listeners, problems };
}

/** Every problem, one a line; none = everything serves. */
export async function loadStaticResources(
  bootstrap: ProxyBootstrap,
  targets: ConfigTargets,
): Promise<readonly string[]> {
  const { scope, owner, records } = targets;
  const { clusters, listeners, problems } = compileStaticResources(bootstrap, scope);
  if (problems.length > 0) return problems;
  for (const message of bootstrap.clusters) {
    records.clusters.of(message.name, true).active = received(ClusterSchema, message, "");
  }
  owner.swap({ clusters });
  await Promise.all([...clusters.values()].map((cluster) => cluster.start()));
  const failures: string[] = [];
  for (const [index, { listener, clusterNames }] of listeners.entries()) {
    for (const name of clusterNames) owner.staticClusterNames.add(name);
    const reason = await owner.applyListener(listener);
    if (reason !== undefined) failures.push(`error adding listener '${listener.name}': ${reason}`);
    records.listeners.of(listener.name, true).active = received(ListenerSchema, bootstrap.listeners[index]!, "");
  }
  return failures;
}
