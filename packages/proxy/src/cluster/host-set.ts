// The hosts of a cluster and the balancer over them. An endpoint update keeps the Host objects whose address stays, so
// that their connections and counters live on.
import { type EndpointCheck, Host, type HostAddress, type LoadBalancer, type LoadBalancerContext } from "./cluster.ts";
import type { ClusterStats } from "./cluster-stats.ts";
import { ActiveHealth, conditionOf, isExcluded } from "./host-health.ts";
import { priorityShares } from "./priority-shares.ts";

/** An endpoint as configuration describes it. */
export interface EndpointDescription {
  readonly address: HostAddress;
  readonly hostname: string;
  readonly weight: number;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly healthy: boolean;
  readonly degraded?: boolean;
  readonly priority: number;
  readonly zone?: string;
  readonly check?: EndpointCheck | undefined;
}

/** Chooses among hosts that are all eligible; made anew whenever the set changes. */
export interface HostPicker {
  /** Undefined only when there are no hosts. */
  pick(): Host | undefined;
}

export type MakePicker = (hosts: readonly Host[]) => HostPicker;

/** Of a cluster whose hosts are checked. */
export interface HostChecks {
  /** common_lb_config.ignore_new_hosts_until_first_hc. */
  readonly ignoresNewHosts: boolean;
  /** A host that is well outlives its endpoint (the contrary of Cluster.ignore_health_on_host_removal). */
  readonly keepsHealthyHosts: boolean;
}

export interface HostSetOptions {
  readonly makePicker: MakePicker;
  /** Below this share of healthy hosts (in percent) all hosts are used (common_lb_config.healthy_panic_threshold). */
  readonly panicThresholdPercent: number;
  /** Undefined = a host is well unless its endpoint says otherwise. */
  readonly checks?: HostChecks | undefined;
  readonly stats: MembershipStats;
  readonly random: () => number;
  /** Called for each host that an update has dropped, after `active` became false. */
  readonly onDropped: (host: Host) => void;
}

export type MembershipStats = Pick<
  ClusterStats,
  "membershipChanges" | "membershipTotal" | "membershipHealthy" | "membershipDegraded" | "membershipExcluded"
>;

/** Of one level, or of all. */
interface Census {
  readonly hosts: number;
  readonly healthy: number;
  readonly degraded: number;
  readonly excluded: number;
}

const nobody: Census = { hosts: 0, healthy: 0, degraded: 0, excluded: 0 };

function addressKey(address: HostAddress): string {
  return address.type === "ip" ? `${address.ip} ${address.port}` : address.path;
}

export class HostSet implements LoadBalancer {
  readonly #options: HostSetOptions;
  #byAddress = new Map<string, Host>();
  #hosts: readonly Host[] = [];
  #picker: HostPicker;
  /** As the statistics have it. */
  #counted = nobody;

  constructor(options: HostSetOptions) {
    this.#options = options;
    this.#picker = options.makePicker([]);
  }

  get hosts(): readonly Host[] {
    return this.#hosts;
  }

  /** Endpoints of the same address count once, the first one wins. */
  update(endpoints: readonly EndpointDescription[]): void {
    const next = new Map<string, Host>();
    for (const endpoint of endpoints) {
      const key = addressKey(endpoint.address);
      if (!next.has(key)) next.set(key, this.#keptOrNew(key, endpoint));
    }
    if (this.#options.checks?.keepsHealthyHosts === true) {
      for (const [key, host] of this.#byAddress) {
        if (next.has(key) || !host.healthy || host.activeHealth === undefined || host.activeHealth.hasFailed) continue;
        host.activeHealth.awaitsRemoval = true;
        next.set(key, host);
      }
    }
    this.#replace(next);
  }

  /** Drops all, whatever checks say. */
  clear(): void {
    this.#replace(new Map());
  }

  /** Drops a host that outlived its endpoint. */
  drop(host: Host): void {
    const next = new Map(this.#byAddress);
    next.delete(addressKey(host.address));
    this.#replace(next);
  }

  #replace(next: Map<string, Host>): void {
    const previous = this.#byAddress;
    this.#byAddress = next;
    this.#hosts = [...next.values()].sort((one, other) => one.priority - other.priority);
    this.refresh();
    const dropped = [...previous].filter(([key, host]) => next.get(key) !== host);
    if (dropped.length > 0 || next.size !== previous.size) this.#options.stats.membershipChanges.increment();
    for (const [, host] of dropped) {
      host.active = false;
      this.#options.onDropped(host);
    }
  }

  /** To be called when the health of a host has changed, or a host was ejected or is back. */
  refresh(): void {
    const { panicThresholdPercent, makePicker, random } = this.#options;
    const levels = [...Map.groupBy(this.#hosts, ({ priority }) => priority).values()];
    const counts = levels.map((hosts) => census(hosts));
    this.#count(counts);
    const shares = priorityShares(counts, panicThresholdPercent);
    const picks: SharePicker[] = levels.map((hosts, index) => {
      const { isInPanic, percent } = shares[index]!;
      const used = isInPanic ? hosts : hosts.filter((host) => conditionOf(host) === "healthy");
      return { percent, picker: makePicker(used) };
    });
    for (const [index, { degradedPercent: percent }] of shares.entries()) {
      if (percent === 0) continue;
      const degraded = levels[index]!.filter((host) => conditionOf(host) === "degraded");
      picks.push({ percent, picker: makePicker(degraded) });
    }
    // Most clusters have one level, and choosing among levels costs them nothing.
    this.#picker = picks.length > 1 ? among(picks, random) : (picks[0]?.picker ?? makePicker([]));
  }

  /** By differences: another version of the cluster may count under the same name. */
  #count(levels: readonly Census[]): void {
    const { stats } = this.#options;
    const before = this.#counted;
    const now = levels.reduce(total, nobody);
    stats.membershipTotal.add(now.hosts - before.hosts);
    stats.membershipHealthy.add(now.healthy - before.healthy);
    stats.membershipDegraded.add(now.degraded - before.degraded);
    stats.membershipExcluded.add(now.excluded - before.excluded);
    this.#counted = now;
  }

  chooseHost(context: LoadBalancerContext | undefined): Host | undefined {
    const picker = this.#picker;
    let host = picker.pick();
    if (context === undefined) return host;
    for (let picks = 1; picks < context.maxHostPicks; picks += 1) {
      if (host === undefined || !context.shouldAvoid(host)) return host;
      host = picker.pick();
    }
    return host;
  }

  #keptOrNew(key: string, endpoint: EndpointDescription): Host {
    const kept = this.#byAddress.get(key);
    const { address, hostname, weight, metadata, healthy, degraded = false, priority, zone = "", check } = endpoint;
    if (kept === undefined || kept.hostname !== hostname || !isSameCheck(kept.check, check)) {
      const host = new Host(address, hostname, weight, metadata, healthy, priority);
      host.degraded = degraded;
      host.zone = zone;
      host.isCanary = isCanary(metadata);
      host.check = check;
      const { checks } = this.#options;
      if (checks !== undefined && check?.isDisabled !== true)
        host.activeHealth = new ActiveHealth(checks.ignoresNewHosts);
      return host;
    }
    kept.weight = weight;
    kept.healthy = healthy;
    kept.degraded = degraded;
    kept.priority = priority;
    kept.metadata = metadata;
    kept.zone = zone;
    kept.isCanary = isCanary(metadata);
    if (kept.activeHealth !== undefined) kept.activeHealth.awaitsRemoval = false;
    // Labels were resolved from the old metadata.
    kept.metricLabels = undefined;
    return kept;
  }
}

function isCanary(metadata: EndpointDescription["metadata"]): boolean {
  const balancing = metadata["envoy.lb"] as Readonly<Record<string, unknown>> | undefined;
  return balancing?.["canary"] === true;
}

function isSameCheck(one: EndpointCheck | undefined, other: EndpointCheck | undefined): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

function census(hosts: readonly Host[]): Census {
  const conditions = hosts.map(conditionOf);
  const having = (condition: string): number => conditions.filter((own) => own === condition).length;
  return {
    hosts: hosts.length,
    healthy: having("healthy"),
    degraded: having("degraded"),
    excluded: hosts.filter(isExcluded).length,
  };
}

function total(one: Census, other: Census): Census {
  return {
    hosts: one.hosts + other.hosts,
    healthy: one.healthy + other.healthy,
    degraded: one.degraded + other.degraded,
    excluded: one.excluded + other.excluded,
  };
}

interface SharePicker {
  readonly percent: number;
  readonly picker: HostPicker;
}

/** Each pick begins with the level: a level takes the share of requests that its health allows. */
function among(picks: readonly SharePicker[], random: () => number): HostPicker {
  return {
    pick: () => {
      let rest = Math.floor(random() * 100);
      for (const { percent, picker } of picks) {
        if (rest < percent) return picker.pick();
        rest -= percent;
      }
      return undefined;
    },
  };
}
