// Endpoints of STRICT_DNS and LOGICAL_DNS clusters: names are asked for again and again while the cluster lives, and
// the last good answer is kept when a resolver fails.
import type { Logger } from "@tulle/telemetry";
import type { DnsLookup, DnsLookupFamily } from "./dns-lookup.ts";
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
  readonly lookup: DnsLookup;
  readonly family: DnsLookupFamily;
  readonly refreshIntervalMs: number;
  readonly log: Logger;
}

export class DnsEndpoints implements EndpointSource {
  readonly #options: DnsEndpointsOptions;
  readonly #answers: (readonly string[])[];
  #timer: NodeJS.Timeout | undefined = undefined;
  #isStopped = false;

  constructor(options: DnsEndpointsOptions) {
    this.#options = options;
    this.#answers = options.endpoints.map(() => []);
  }

  async start(update: (endpoints: readonly EndpointDescription[]) => void): Promise<void> {
    await Promise.all(this.#options.endpoints.map((endpoint, index) => this.#ask(endpoint.dnsName, index)));
    if (this.#isStopped) return;
    update(this.#current());
    this.#timer = setTimeout(() => {
      void this.start(update);
    }, this.#options.refreshIntervalMs).unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  async #ask(name: string, index: number): Promise<void> {
    try {
      const addresses = await this.#options.lookup(name, this.#options.family);
      this.#answers[index] = this.#options.usesAllAddresses ? addresses : addresses.slice(0, 1);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.log.warning("cannot resolve a cluster's endpoint", { name, reason });
    }
  }

  #current(): EndpointDescription[] {
    return this.#options.endpoints.flatMap((endpoint, index) =>
      this.#answers[index]!.map((ip) => ({
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
