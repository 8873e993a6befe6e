// Hosts of an ORIGINAL_DST cluster: a connection's own destination, where the kernel has redirected it here, or, where
// configuration believes a header, what that says (Envoy: OriginalDstCluster). They come with the connections that lead
// to them, and leave when nobody has used them between two clean-ups.
import net from "node:net";
import type { Logger } from "@tulle/telemetry";
import { canonicalIp } from "../http/canonical-ip.ts";
import type { Destination, DestinationFacts } from "../http/destination.ts";
import { ipPortText } from "../http/ip-port-text.ts";
import { drainHostPool } from "../upstream/host-pool.ts";
import type { Clock } from "../worker/clock.ts";
import type { ClusterStats } from "./cluster-stats.ts";
import { Host } from "./cluster.ts";
import type { OriginalDstStats } from "./original-dst-stats.ts";

/** Of one cluster; with so many, a new one takes the place of one that nobody uses, or is refused. */
export const maxOriginalDstHosts = 4096;

export interface OriginalDstHostsOptions {
  readonly clusterName: string;
  /** Lower case; undefined = no header is believed (OriginalDstLbConfig.use_http_header, http_header_name). */
  readonly headerName: string | undefined;
  /** In the place of the destination's (OriginalDstLbConfig.upstream_port_override). */
  readonly portOverride: number | undefined;
  /** Cluster.cleanup_interval. */
  readonly cleanupIntervalMs: number;
  /** Whether this proxy itself takes connections at that address: they would come back for ever. */
  readonly isOwnListener: (ip: string, port: number) => boolean;
  readonly stats: ClusterStats;
  readonly ownStats: OriginalDstStats;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Entry {
  readonly key: string;
  readonly host: Host;
  isUsed: boolean;
}

export class OriginalDstHosts {
  readonly #options: OriginalDstHostsOptions;
  /** By `ip:port`, the one that was asked for longest ago first. */
  readonly #entries = new Map<string, Entry>();
  #timer: unknown = undefined;
  #hasToldLoop = false;
  #isStopped = false;

  constructor(options: OriginalDstHostsOptions) {
    this.#options = options;
  }

  hosts(): readonly Host[] {
    return [...this.#entries.values()].map(({ host }) => host);
  }

  /** Undefined where there is no destination, where it is this proxy, where there are too many, or after `stop`. */
  hostOf(info: DestinationFacts): Host | undefined {
    if (this.#isStopped) return undefined;
    const destination = this.#destinationOf(info);
    if (destination === undefined) return undefined;
    let entry = this.#entries.get(destination.text);
    if (entry === undefined) {
      if (this.#isLoop(destination)) return undefined;
      if (this.#entries.size >= maxOriginalDstHosts && !this.#dropUnused()) {
        this.#options.ownStats.hostOverflow.increment();
        return undefined;
      }
      entry = this.#add(destination);
    } else {
      // Inserting it again keeps the order.
      this.#entries.delete(entry.key);
      this.#entries.set(entry.key, entry);
    }
    entry.isUsed = true;
    return entry.host;
  }

  stop(): void {
    this.#isStopped = true;
    this.#options.clock.clearTimer(this.#timer);
    for (const entry of this.#entries.values()) this.#drop(entry);
  }

  #destinationOf(info: DestinationFacts): Destination | undefined {
    const { headerName, portOverride } = this.#options;
    const asked = headerName === undefined ? undefined : info.request?.headers.get(headerName);
    let destination = asked === undefined ? undefined : parseDestination(asked);
    if (asked !== undefined && destination === undefined) this.#options.stats.originalDstHostInvalid.increment();
    destination ??= info.listener?.originalDestination;
    if (destination === undefined || portOverride === undefined) return destination;
    const { ip } = destination;
    return { ip, port: portOverride, text: ipPortText(ip, portOverride) };
  }

  #isLoop({ ip, port, text }: Destination): boolean {
    const { isOwnListener, ownStats, log, clusterName } = this.#options;
    if (!isOwnListener(ip, port)) return false;
    ownStats.loop.increment();
    if (!this.#hasToldLoop) {
      this.#hasToldLoop = true;
      log.warning("refused to connect to a listener of this proxy", { cluster: clusterName, destination: text });
    }
    return true;
  }

  #add({ ip, port, text }: Destination): Entry {
    const { clusterName, stats } = this.#options;
    const host = new Host({ type: "ip", ip, port }, clusterName + text, 1, {}, true);
    const entry: Entry = { key: text, host, isUsed: true };
    this.#entries.set(text, entry);
    this.#countMember(1);
    stats.membershipChanges.increment();
    this.#timer ??= this.#cleanUpLater();
    return entry;
  }

  #cleanUpLater(): unknown {
    const { clock, cleanupIntervalMs } = this.#options;
    return clock.setTimer(() => {
      for (const entry of this.#entries.values()) {
        if (entry.isUsed || entry.host.activeRequests > 0) entry.isUsed = false;
        else this.#drop(entry);
      }
      this.#timer = this.#entries.size === 0 ? undefined : this.#cleanUpLater();
    }, cleanupIntervalMs);
  }

  #dropUnused(): boolean {
    for (const entry of this.#entries.values()) {
      if (entry.host.activeRequests > 0) continue;
      this.#drop(entry);
      return true;
    }
    return false;
  }

  #drop({ key, host }: Entry): void {
    this.#entries.delete(key);
    this.#countMember(-1);
    this.#options.stats.membershipChanges.increment();
    host.active = false;
    drainHostPool(host);
  }

  #countMember(difference: number): void {
    const { membershipTotal, membershipHealthy } = this.#options.stats;
    membershipTotal.add(difference);
    membershipHealthy.add(difference);
  }
}

/** `10.0.0.1:80`, `[fd00::1]:80`, the address in any of its forms. */
function parseDestination(text: string): Destination | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):(\d{1,5})$/.exec(text);
  const ip = canonicalIp(match?.[1] ?? match?.[2] ?? "");
  const port = Number(match?.[3]);
  const isAddress = match?.[1] === undefined ? net.isIPv4(ip) : net.isIPv6(ip);
  return isAddress && port <= 65_535 ? { ip, port, text: ipPortText(ip, port) } : undefined;
}
