// Endpoints of STRICT_DNS and LOGICAL_DNS clusters: names are asked for again and again while the cluster lives, and
// the last answer is kept while nobody answers.
import type { Logger } from "@tulle/telemetry";
import type { Clock } from "../worker/clock.ts";
import type { DnsLookup, DnsLookupFamily } from "./dns-lookup.ts";
import { type DnsRefresh, refreshAfterAnswerMs, refreshAfterFailureMs } from "./dns-refresh.ts";
import type { DnsStats } from "./dns-stats.ts";
import type { EndpointDescription } from "./host-set.ts";
import type { EndpointSource } from "./runtime-cluster.ts";

/** An endpoint whose address is a name. */
export interface NamedEndpoint extends Omit<EndpointDescription, "address"> {
  readonly dnsName: string;
  readonly port: number;
}

export interface DnsEndpointsOptions {
  readonly endpoints: readonly NamedEndpoint[];
  /** STRICT_DNS uses every address of a name, LOGICAL_DNS the first one. */
  readonly usesAllAddresses: boolean;
  /** Whether the cluster is warm only once names have been looked up (Cluster.wait_for_warm_on_init). */
  readonly holdsStartUp: boolean;
  readonly lookup: DnsLookup;
  readonly family: DnsLookupFamily;
  readonly refresh: DnsRefresh;
  readonly stats: DnsStats;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
}

/** A name, which is asked for in a rhythm of its own. */
interface Target {
  readonly endpoint: NamedEndpoint;
  addresses: readonly string[];
  failures: number;
  timer: unknown;
}

export class DnsEndpoints implements EndpointSource {
  readonly #options: DnsEndpointsOptions;
  readonly #targets: readonly Target[];
  #isStopped = false;

  constructor(options: DnsEndpointsOptions) {
    this.#options = options;
    this.#targets = options.endpoints.map((endpoint) => ({ endpoint, addresses: [], failures: 0, timer: undefined }));
  }

  /** Resolves once one name has an address, or all have been asked for: a silent server holds nobody else up. */
  async start(update: (endpoints: readonly EndpointDescription[]) => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const all = this.#targets.map(async (target) => {
      await this.#ask(target, update);
      if (target.addresses.length > 0) resolve();
    });
    if (this.#options.holdsStartUp) await Promise.race([promise, Promise.all(all)]);
  }

  stop(): void {
    this.#isStopped = true;
    for (const { timer } of this.#targets) this.#options.clock.clearTimer(timer);
  }

  async #ask(target: Target, update: (endpoints: readonly EndpointDescription[]) => void): Promise<void> {
    const { lookup, family, stats, refresh, random, clock, log } = this.#options;
    const name = target.endpoint.dnsName;
    let waitMs: number;
    stats.attempts.increment();
    try {
      const { addresses, ttlMs } = await lookup(name, family);
      if (this.#isStopped) return;
      stats.successes.increment();
      target.failures = 0;
      this.#take(target, addresses, update);
      waitMs = refreshAfterAnswerMs(refresh, addresses.length > 0 ? ttlMs : undefined, random);
    } catch (error) {
      if (this.#isStopped) return;
      stats.failures.increment();
      target.failures += 1;
      waitMs = refreshAfterFailureMs(refresh, target.failures, random);
      const reason = error instanceof Error ? error.message : String(error);
      log.warning("cannot resolve a cluster's endpoint", { name, reason });
    }
    target.timer = clock.setTimer(() => void this.#ask(target, update), waitMs);
  }

  /**
   * An answer that the name has no address empties the cluster (STRICT_DNS); the one address of a LOGICAL_DNS stays.
   */
  #take(
    target: Target,
    answered: readonly string[],
    update: (endpoints: readonly EndpointDescription[]) => void,
  ): void {
    const { usesAllAddresses, log, stats } = this.#options;
    const name = target.endpoint.dnsName;
    if (answered.length === 0) log.warning("the name of a cluster's endpoint has no address", { name });
    const addresses = usesAllAddresses ? answered : answered.length > 0 ? answered.slice(0, 1) : target.addresses;
    if (isSame(addresses, target.addresses)) {
      stats.unchanged.increment();
      return;
    }
    target.addresses = addresses;
    update(this.#current());
  }

  #current(): EndpointDescription[] {
    return this.#targets.flatMap(({ endpoint, addresses }) =>
      addresses.map((ip) => ({
        address: { type: "ip", ip, port: endpoint.port },
        hostname: endpoint.hostname,
        weight: endpoint.weight,
        metadata: endpoint.metadata,
        healthy: endpoint.healthy,
        degraded: endpoint.degraded ?? false,
        priority: endpoint.priority,
        check: endpoint.check,
      })),
    );
  }
}

function isSame(addresses: readonly string[], others: readonly string[]): boolean {
  return addresses.length === others.length && addresses.every((address) => others.includes(address));
}
