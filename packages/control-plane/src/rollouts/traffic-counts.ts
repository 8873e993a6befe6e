// How many requests each version got, how many failed and how long they took, out of the metrics that proxies show:
// the differences from one reading to the next, whatever restarts, comes or goes meanwhile.

export type Version = "stable" | "canary";
/** `cluster`: what Envoy's own statistics say of the cluster, at its clients. */
export type Reporter = "source" | "destination" | "cluster";

/** Undefined for what is of neither. */
export interface KnownVersions {
  /** By `<namespace>/<name>`. */
  readonly ofWorkload: (workload: string) => Version | undefined;
  readonly ofSubset: (subset: string) => Version | undefined;
}

export interface VersionCounts {
  readonly requests: number;
  readonly failed: number;
  /** Requests within each bound of milliseconds, by the bound. */
  readonly buckets: ReadonlyMap<number, number>;
}

/** Since counting began. */
export type TrafficCounts = Readonly<Record<Reporter, Readonly<Record<Version, VersionCounts>>>>;

const requestsMetric = "istio_requests_total";
const durationsMetric = "istio_request_duration_milliseconds_bucket";
// For stock Envoys, which have no filter for Istio's metrics. A request is charged once, with its last try's code.
const clusterRequestsMetric = "envoy_cluster_upstream_rq";
const clusterDurationsMetric = "envoy_cluster_upstream_rq_time_bucket";
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
/** Series of one pod that are remembered. */
export const maxSeries = 20_000;

/** Whether a line of a proxy's metrics may be one that is counted. */
export function isTrafficLine(line: string, host: string): boolean {
  const isOf = (...metrics: readonly string[]): boolean => metrics.some((metric) => line.startsWith(`${metric}{`));
  if (isOf(requestsMetric, durationsMetric)) return line.includes(`destination_service="${host}"`);
  return isOf(clusterRequestsMetric, clusterDurationsMetric) && line.includes(`|${host}"`);
}

interface MutableCounts {
  requests: number;
  failed: number;
  readonly buckets: Map<number, number>;
}

export class TrafficCounter {
  /** Of each pod, the value of each series when it was read last. */
  readonly #pods = new Map<string, Map<string, number>>();
  readonly #counts: Record<Reporter, Record<Version, MutableCounts>> = {
    source: { stable: noCounts(), canary: noCounts() },
    destination: { stable: noCounts(), canary: noCounts() },
    cluster: { stable: noCounts(), canary: noCounts() },
  };

  /**
   * Takes what a pod's proxy shows now. A proxy that is read for the first time tells nothing yet; one whose value has
   * fallen has begun anew (as Prometheus has it). A pod of one of the versions (`own`) speaks as such of that one
   * alone, and the canary's not as a client: what it wants to be promoted by is not its to say.
   */
  take(pod: string, lines: readonly string[], versions: KnownVersions, own?: Version): void {
    const before = this.#pods.get(pod);
    const now = new Map<string, number>();
    for (const line of lines) {
      const end = line.lastIndexOf("}", line.indexOf(" # ") < 0 ? undefined : line.indexOf(" # "));
      const value = Number(
        line
          .slice(end + 1)
          .trim()
          .split(" ", 1)[0],
      );
      if (end < 0 || !Number.isFinite(value) || value < 0 || now.size >= maxSeries) continue;
      const series = line.slice(0, end);
      now.set(series, value);
      if (before === undefined) continue;
      const last = before.get(series) ?? 0;
      const more = value >= last ? value - last : value;
      if (more > 0) this.#add(series, more, versions, own);
    }
    this.#pods.set(pod, now);
  }

  /** Forgets pods that are no longer there. */
  keep(pods: ReadonlySet<string>): void {
    for (const pod of this.#pods.keys()) if (!pods.has(pod)) this.#pods.delete(pod);
  }

  get counts(): TrafficCounts {
    return structuredClone(this.#counts);
  }

  #add(series: string, more: number, versions: KnownVersions, own: Version | undefined): void {
    const labels = new Map([...series.matchAll(label)].map(([, name = "", value = ""]) => [name, value]));
    const seen = series.startsWith("envoy_") ? seenAtCluster(labels, versions) : seenByReporter(labels, versions);
    if (seen?.version === undefined) return;
    if (seen.reporter === "destination" ? seen.version !== own : own === "canary") return;
    const counts = this.#counts[seen.reporter][seen.version];
    // Status 0: the client went away before there was an answer, which says nothing of the version.
    if (labels.get("response_code") === "0") return;
    if (!labels.has("le")) {
      counts.requests += more;
      if (hasFailed(labels)) counts.failed += more;
      return;
    }
    const bound = labels.get("le") === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels.get("le"));
    if (!Number.isNaN(bound)) counts.buckets.set(bound, (counts.buckets.get(bound) ?? 0) + more);
  }
}

type Labels = ReadonlyMap<string, string>;
type Seen = { readonly reporter: Reporter; readonly version: Version | undefined } | undefined;

function seenByReporter(labels: Labels, { ofWorkload }: KnownVersions): Seen {
  const reporter = labels.get("reporter");
  if (reporter !== "source" && reporter !== "destination") return undefined;
  const workload = `${labels.get("destination_workload_namespace")}/${labels.get("destination_workload")}`;
  return { reporter, version: ofWorkload(workload) };
}

/** The cluster's name is `outbound|<port>|<subset>|<host>`. What is counted by code is there by its class, too. */
function seenAtCluster(labels: Labels, { ofSubset }: KnownVersions): Seen {
  const [direction, , subset = ""] = (labels.get("cluster_name") ?? "").split("|");
  return direction === "outbound" && !labels.has("response_code_class")
    ? { reporter: "cluster", version: ofSubset(subset) }
    : undefined;
}

function hasFailed(labels: Labels): boolean {
  if (labels.get("response_code")?.startsWith("5") === true) return true;
  const status = labels.get("grpc_response_status") ?? "";
  return labels.get("request_protocol") === "grpc" && status !== "" && status !== "0";
}

function noCounts(): MutableCounts {
  return { requests: 0, failed: 0, buckets: new Map() };
}

/** What has come since `begin`. */
export function countsSince(now: TrafficCounts, begin: TrafficCounts): TrafficCounts {
  const versions = (reporter: Reporter): Record<Version, VersionCounts> => ({
    stable: difference(now[reporter].stable, begin[reporter].stable),
    canary: difference(now[reporter].canary, begin[reporter].canary),
  });
  return { source: versions("source"), destination: versions("destination"), cluster: versions("cluster") };
}

function difference(now: VersionCounts, begin: VersionCounts): VersionCounts {
  return {
    requests: now.requests - begin.requests,
    failed: now.failed - begin.failed,
    buckets: new Map([...now.buckets].map(([bound, count]) => [bound, count - (begin.buckets.get(bound) ?? 0)])),
  };
}

/**
 * Milliseconds within which that percent of the requests were answered, as Prometheus' histogram_quantile has it; NaN
 * without any.
 */
export function percentile(buckets: ReadonlyMap<number, number>, percent: number): number {
  const sorted = [...buckets].sort(([a], [b]) => a - b);
  const total = sorted.at(-1)?.[1] ?? 0;
  if (total === 0) return Number.NaN;
  const rank = (percent / 100) * total;
  let lower = { bound: 0, count: 0 };
  for (const [bound, count] of sorted) {
    if (count >= rank && count > lower.count) {
      if (!Number.isFinite(bound)) return lower.bound;
      return lower.bound + (bound - lower.bound) * ((rank - lower.count) / (count - lower.count));
    }
    lower = { bound, count };
  }
  return lower.bound;
}
