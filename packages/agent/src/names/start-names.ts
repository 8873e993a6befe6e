// DNS beside the workload: the server of packages/capture, with the names that come by the proxy's stream.
import {
  type DnsAddress,
  forwardingOf,
  type NameServer,
  NameTable,
  type NameTableOptions,
  ResolverFile,
  startDnsServer,
} from "@tulle/capture/dns";
import type { Logger, MetricRegistry } from "@tulle/telemetry";
import { systemClock } from "@tulle/timing";
import { NameSubscription } from "./name-subscription.ts";

export interface NamesOptions {
  readonly addresses: readonly DnsAddress[];
  readonly namespace: string;
  /** resolv.conf of the machine, whose servers are asked for all other names. */
  readonly resolverFile: string;
  /** `svc.cluster.local` */
  readonly serviceDomain: string;
  readonly ownDomains: readonly string[];
  readonly metrics: MetricRegistry;
  readonly log: Logger;
}

export interface RunningNames extends AsyncDisposable {
  readonly subscription: NameSubscription;
  readonly addresses: readonly NameServer[];
}

/** Rejects when an address cannot be bound. */
export async function startNames(options: NamesOptions): Promise<RunningNames> {
  const { log, metrics, namespace, serviceDomain } = options;
  const resolver = new ResolverFile({ path: options.resolverFile, clock: systemClock, log });
  const tableOptions: NameTableOptions = {
    namespace,
    serviceDomain,
    searchDomains: () => resolver.settings().searchDomains,
  };
  let table: NameTable | undefined;
  const subscription = new NameSubscription({
    onNames: (entries) => (table = new NameTable(entries, tableOptions)),
    log,
  });
  const running = await startDnsServer({
    addresses: options.addresses,
    names: () => table,
    ownDomains: options.ownDomains,
    forwarding: () => forwardingOf(resolver.settings(), options.addresses),
    metrics,
    clock: systemClock,
  });
  log.info("answers DNS questions", {
    addresses: running.addresses.map(({ address, port }) => `${address}:${port}`).join(" "),
  });
  return { subscription, addresses: running.addresses, [Symbol.asyncDispose]: () => running.close() };
}
