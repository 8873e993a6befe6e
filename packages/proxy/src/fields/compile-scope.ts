// What compilation needs besides the resource: where names lead, where metrics and access logs go, and the process's
// surroundings. One scope a proxy; `detachedScope` makes one without side effects for the explain command and tests.
import { alwaysRedacted, type RedactedNames } from "../format/redacted-names.ts";
import type { Node } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import type { AccessLogFile } from "../access-log/access-log-file.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { type Clock, systemClock } from "../worker/clock.ts";
import type { DnsLookup } from "../cluster/dns-lookup.ts";
import { systemDnsLookup } from "../cluster/dns-resolver.ts";
import type { FormatEnvironment } from "../format/operator.ts";
import type { RouteTable } from "../route/route-table.ts";
import { type Slot, SlotTable } from "../runtime/slot.ts";
import { BatchExporters } from "../upstream/batch-exporter.ts";
import { type SecretSlot, type SecretSource, SecretSlotTable } from "../tls/secret-slot.ts";

/** Takes whole lines. */
export type LogFile = Pick<AccessLogFile, "write">;

export interface NodeNames {
  readonly id: string;
  readonly cluster: string;
  readonly zone: string;
}

export interface CompileScope extends FormatEnvironment {
  /** The slot of that name, made when it is asked for the first time. */
  clusterSlot(name: string): Slot<Cluster>;
  /** The slot only if something asked for it before; for names that requests bring (cluster_header). */
  knownClusterSlot(name: string): Slot<Cluster> | undefined;
  routeTableSlot(name: string): Slot<RouteTable>;
  /** The slot of that secret from that source; whoever is compiled with it is what it is subscribed for. */
  secretSlot(name: string, source: SecretSource, initialFetchTimeoutMs: number): SecretSlot;
  readonly metrics: MetricRegistry;
  readonly logging: Logging;
  /** @throws when the file cannot be opened. */
  openAccessLog(path: string): LogFile;
  /** What sends spans, log records and metrics. */
  readonly exporters: BatchExporters;
  /** What the proxy is to its control plane. */
  readonly node: NodeNames;
  readonly lookup: DnsLookup;
  /** In [0, 1): load balancers. */
  readonly random: () => number;
  /** When ejected hosts are looked at again. */
  readonly clock: Clock;
  /** cluster_manager.upstream_bind_config of the bootstrap. */
  readonly defaultSourceAddress: string | undefined;
  /** Whether this proxy takes connections at that address; absent = at none. */
  readonly isOwnListener?: ((ip: string, port: number) => boolean) | undefined;
  /**
   * Clusters of the bootstrap, which streams of configuration may go to; undefined = nothing is known of a bootstrap.
   */
  readonly staticClusterNames?: ReadonlySet<string> | undefined;
  /** The bootstrap's, for expressions. */
  readonly bootstrapNode?: Node | undefined;
  /** Of the listener that is compiled; else those that always are. */
  readonly redactedNames: RedactedNames;
}

/** A scope of its own: names lead to empty slots, logs and metrics stay in it. */
export function detachedScope(overrides: Partial<CompileScope> = {}): CompileScope {
  const clusters = new SlotTable<Cluster>();
  const routeTables = new SlotTable<RouteTable>();
  const secrets = new SecretSlotTable();
  return {
    clusterSlot: (name) => clusters.get(name),
    knownClusterSlot: (name) => clusters.known(name),
    routeTableSlot: (name) => routeTables.get(name),
    secretSlot: (name, source, timeoutMs) => secrets.get(name, source, timeoutMs),
    metrics: new MetricRegistry(),
    logging: new Logging({ sink: () => {} }),
    openAccessLog: () => ({ write: () => {} }),
    exporters: new BatchExporters(),
    node: { id: "", cluster: "", zone: "" },
    lookup: systemDnsLookup,
    random: Math.random,
    clock: systemClock,
    defaultSourceAddress: undefined,
    redactedNames: alwaysRedacted,
    environment: {},
    hostname: "localhost",
    ...overrides,
  };
}
