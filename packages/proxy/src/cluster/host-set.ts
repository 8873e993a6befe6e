// The hosts of a cluster and the balancer over them. An endpoint update keeps the Host objects whose address stays, so
// that their connections and counters live on.
import { Host, type HostAddress, type LoadBalancer, type LoadBalancerContext } from "./cluster.ts";
import { type PriorityShare, priorityShares } from "./priority-shares.ts";

/** An endpoint as configuration describes it. */
export interface EndpointDescription {
  readonly address: HostAddress;
  readonly hostname: string;
  readonly weight: number;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly healthy: boolean;
  readonly priority: number;
}

/** Chooses among hosts that are all eligible; made anew whenever the set changes. */
export interface HostPicker {
  /** Undefined only when there are no hosts. */
  pick(): Host | undefined;
}

export type MakePicker = (hosts: readonly Host[]) => HostPicker;

export interface HostSetOptions {
  readonly makePicker: MakePicker;
  /** Below this share of healthy hosts (in percent) all hosts are used (common_lb_config.healthy_panic_threshold). */
  readonly panicThresholdPercent: number;
  readonly random: () => number;
  /** Called for each host that an update has dropped, after `active` became false. */
  readonly onDropped: (host: Host) => void;
}

function addressKey(address: HostAddress): string {
  return address.type === "ip" ? `${address.ip} ${address.port}` : address.path;
}

export class HostSet implements LoadBalancer {
  readonly #options: HostSetOptions;
  #byAddress = new Map<string, Host>();
  #hosts: readonly Host[] = [];
  #picker: HostPicker;

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
    const previous = this.#byAddress;
    this.#byAddress = next;
    this.#hosts = [...next.values()].sort((one, other) => one.priority - other.priority);
    this.refresh();
    for (const [key, host] of previous) {
      if (next.get(key) === host) continue;
      host.active = false;
      this.#options.onDropped(host);
    }
  }

  /** To be called when the health of a host has changed, or a host was ejected or is back. */
  refresh(): void {
    const { panicThresholdPercent, makePicker, random } = this.#options;
    const isHealthy = (host: Host): boolean => host.healthy && !host.ejected;
    const levels = [...Map.groupBy(this.#hosts, ({ priority }) => priority).values()];
    const counts = levels.map((hosts) => ({ hosts: hosts.length, healthy: hosts.filter(isHealthy).length }));
    const shares = priorityShares(counts, panicThresholdPercent);
    const pickers = levels.map((hosts, index) =>
      makePicker(shares[index]!.isInPanic ? hosts : hosts.filter(isHealthy)),
    );
    // Most clusters have one level, and choosing among levels costs them nothing.
    this.#picker = pickers.length > 1 ? amongLevels(pickers, shares, random) : (pickers[0] ?? makePicker([]));
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
    if (kept === undefined || kept.hostname !== endpoint.hostname) {
      const { address, hostname, weight, metadata, healthy, priority } = endpoint;
      return new Host(address, hostname, weight, metadata, healthy, priority);
    }
    kept.weight = endpoint.weight;
    kept.healthy = endpoint.healthy;
    kept.priority = endpoint.priority;
    kept.metadata = endpoint.metadata;
    // Labels were resolved from the old metadata.
    kept.metricLabels = undefined;
    return kept;
  }
}

/** Each pick begins with the level: a level takes the share of requests that its health allows. */
function amongLevels(
  pickers: readonly HostPicker[],
  shares: readonly PriorityShare[],
  random: () => number,
): HostPicker {
  return {
    pick: () => {
      let rest = Math.floor(random() * 100);
      for (const [index, { percent }] of shares.entries()) {
        if (rest < percent) return pickers[index]!.pick();
        rest -= percent;
      }
      return undefined;
    },
  };
}
