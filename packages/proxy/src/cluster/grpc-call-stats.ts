// What a cluster's gRPC calls are counted under: `cluster.<name>.grpc.<service>.<method>.<stat>`, or without service
// and method (Envoy: `Grpc::ContextImpl`). Filters that look at calls have one each.
import type { Counter, Histogram, MetricDescription, MetricRegistry } from "@tulle/telemetry";
import { ownText } from "../http/own-text.ts";
import { clusterScope } from "./cluster-stats.ts";
import type { Cluster } from "./cluster.ts";

/** Methods told apart in a cluster: paths come from clients. One more is counted without its name. */
const maxMethods = 1000;
/** Of service and method together; a longer one is counted without its name. */
const maxNameCharacters = 256;

/** Which methods have series of their own: every one, or those that are listed as `service/method`. */
export type CountedMethods = "all" | ReadonlySet<string>;

export interface GrpcCallStatsOptions {
  readonly metrics: MetricRegistry;
  readonly protocol: "grpc" | "grpc-web";
  readonly methods: CountedMethods;
  /** In names of services, for those who read dots as levels (replace_dots_in_grpc_service_name). */
  readonly replacesDots: boolean;
}

export class GrpcCallStats {
  readonly #options: GrpcCallStatsOptions;
  /** By path. */
  readonly #byCluster = new WeakMap<Cluster, Map<string, GrpcCallCounters | undefined>>();

  constructor(options: GrpcCallStatsOptions) {
    this.#options = options;
  }

  /** Undefined where the path is no `/service/method`. */
  of(cluster: Cluster, path: string): GrpcCallCounters | undefined {
    let byPath = this.#byCluster.get(cluster);
    if (byPath === undefined) this.#byCluster.set(cluster, (byPath = new Map()));
    const query = path.indexOf("?");
    const key = query < 0 ? path : path.slice(0, query);
    const known = byPath.get(key);
    if (known !== undefined) return known;
    const parts = key.split("/").filter((part) => part !== "");
    if (parts.length !== 2) return undefined;
    const method = `${parts[0]!}/${parts[1]!}`;
    const { methods } = this.#options;
    const isNamed =
      methods === "all" ? byPath.size < maxMethods && key.length <= maxNameCharacters : methods.has(method);
    return isNamed ? kept(byPath, key, () => this.#make(cluster, method)) : kept(byPath, "", () => this.#make(cluster));
  }

  #make({ observabilityName }: Cluster, method?: string): GrpcCallCounters {
    const { metrics, protocol, replacesDots } = this.#options;
    const [service = "", name = ""] = method === undefined ? [] : ownText(method).split("/");
    const shownService = replacesDots ? service.replaceAll(".", "_") : service;
    const within = method === undefined ? "" : `${shownService}.${name}.`;
    const { root, label } = clusterScope(observabilityName);
    const labels = {
      ...(method !== undefined && { envoy_grpc_bridge_method: name, envoy_grpc_bridge_service: shownService }),
      [label]: observabilityName,
    };
    return new GrpcCallCounters(metrics, (stat) => ({
      name: `envoy_${root}_${protocol.replace("-", "_")}_${stat}`,
      labels,
      statName: `${root}.${observabilityName.replaceAll(":", "_")}.${protocol}.${within}${stat}`,
    }));
  }
}

function kept<T>(map: Map<string, T>, key: string, make: () => T): T {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key === "" ? key : ownText(key), made);
  return made;
}

type CounterStat = "success" | "failure" | "total" | "request_message_count" | "response_message_count";

/** Of one method, or of all together. Series are made when they first count, as by Envoy. */
export class GrpcCallCounters {
  readonly #metrics: MetricRegistry;
  readonly #description: (stat: string) => MetricDescription;
  readonly #counters = new Map<string, Counter>();
  #upstreamTimeMs: Histogram | undefined = undefined;

  constructor(metrics: MetricRegistry, description: (stat: string) => MetricDescription) {
    this.#metrics = metrics;
    this.#description = description;
  }

  add(stat: CounterStat, amount: number): void {
    this.#counter(stat).add(amount);
  }

  /** The call has ended like that, as its head or its trailers say; undefined = they say nothing. */
  countStatus(status: string | undefined): void {
    if (status === undefined) return;
    // Statuses that a host makes up are one series.
    this.#counter(/^\d{1,2}$/.test(status) ? status : "unknown").increment();
    this.#counter(status === "0" ? "success" : "failure").increment();
    this.#counter("total").increment();
  }

  recordUpstreamTime(timeMs: number): void {
    this.#upstreamTimeMs ??= this.#metrics.histogram(this.#description("upstream_rq_time"));
    this.#upstreamTimeMs.record(timeMs);
  }

  #counter(stat: string): Counter {
    let counter = this.#counters.get(stat);
    if (counter === undefined) {
      counter = this.#metrics.counter(this.#description(stat));
      this.#counters.set(stat, counter);
    }
    return counter;
  }
}
