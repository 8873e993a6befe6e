// The name server of a cluster, behind the address of the Service kube-dns: Services and pods by their full names,
// which resolvers make of short ones by their search path, and everything else from the machine's name servers.
import type { MetricRegistry } from "@tulle/telemetry";
import { systemClock } from "@tulle/timing";
import { type DnsAddress, type RunningDnsServer, startDnsServer } from "./dns-server.ts";
import type { ForwarderOptions, NameServer, OpenSocket } from "./forwarder.ts";
import { type NameEntry, NameTable } from "./name-table.ts";

export interface ClusterDnsOptions {
  /** Asked anew for each question that is not the cluster's. */
  readonly forwarding: ForwarderOptions["forwarding"];
  /** Makes sockets of the network from which those servers are reached; default: this process's own. */
  readonly openSocket?: OpenSocket;
  /** Default `cluster.local`: a name in it that is not known is none. */
  readonly clusterDomain?: string;
  readonly metrics: MetricRegistry;
}

export class ClusterDns implements AsyncDisposable {
  readonly #options: ClusterDnsOptions;
  #names: NameTable | undefined;
  #running: RunningDnsServer | undefined;

  constructor(options: ClusterDnsOptions) {
    this.#options = options;
  }

  /** At the addresses of this process's network, for both transports. Rejects when one cannot be bound. */
  async start(addresses: readonly DnsAddress[]): Promise<readonly NameServer[]> {
    const { forwarding, openSocket, clusterDomain = "cluster.local", metrics } = this.#options;
    this.#running = await startDnsServer({
      addresses,
      names: () => this.#names,
      ownDomains: [clusterDomain],
      forwarding,
      ...(openSocket === undefined ? {} : { openSocket }),
      metrics,
      clock: systemClock,
    });
    return this.#running.addresses;
  }

  /** All that there are. Before the first time it says that it cannot answer now, rather than that there is no name. */
  setNames(entries: Iterable<NameEntry>): void {
    const { clusterDomain = "cluster.local" } = this.#options;
    // Whose namespace a short name would be of is known to who asks alone.
    const full = Array.from(entries, (entry) => ({ ...entry, isKubernetes: false }));
    this.#names = new NameTable(full, {
      namespace: "",
      serviceDomain: `svc.${clusterDomain}`,
      searchDomains: () => [],
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running?.close();
  }
}
