// Hosts of a dynamic_forward_proxy cluster: the authority of a request is resolved by DNS, with a bounded cache
// (extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig).
import { isIP } from "node:net";
import type { Logger } from "@tulle/telemetry";
import { drainHostPool } from "../upstream/host-pool.ts";
import type { Clock } from "../worker/clock.ts";
import { Host } from "./cluster.ts";
import type { DnsAnswer, DnsLookup, DnsLookupFamily } from "./dns-lookup.ts";
import { type DnsRefresh, refreshAfterAnswerMs, refreshAfterFailureMs } from "./dns-refresh.ts";

export interface DynamicForwardHostsOptions {
  readonly lookup: DnsLookup;
  readonly family: DnsLookupFamily;
  /** One more host pushes out the one that was used longest ago; none is pushed out while it serves a request. */
  readonly maxHosts: number;
  /** A host that nobody has used for so long is forgotten. */
  readonly hostTtlMs: number;
  readonly refresh: DnsRefresh;
  /** Who asks waits for no longer; 0 = for as long as the resolver does. */
  readonly queryTimeoutMs: number;
  /** Addresses that are not used, whatever a name leads to: all but these may be. */
  readonly isDenied: (ip: string) => boolean;
  /** Port of an authority that names none. */
  readonly defaultPort: number;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
}

interface Entry {
  readonly key: string;
  readonly name: string;
  readonly port: number;
  host: Host | undefined;
  usedAtMs: number;
  failures: number;
  pending: Promise<Host | undefined> | undefined;
  /** Asks again once the answer is over. */
  timer: unknown;
}

/** `host:port` in its parts; undefined when it is not an authority. */
function parseAuthority(authority: string, defaultPort: number): { host: string; port: number } | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/?#@\s]+))(?::(\d{1,5}))?$/.exec(authority);
  if (match === null) return undefined;
  const port = match[3] === undefined ? defaultPort : Number(match[3]);
  return port >= 1 && port <= 65_535 ? { host: (match[1] ?? match[2])!.toLowerCase(), port } : undefined;
}

export class DynamicForwardHosts {
  readonly #options: DynamicForwardHostsOptions;
  /** Those used longest ago come first. */
  readonly #entries = new Map<string, Entry>();

  constructor(options: DynamicForwardHostsOptions) {
    this.#options = options;
  }

  hosts(): readonly Host[] {
    return [...this.#entries.values()].map((entry) => entry.host).filter((host) => host !== undefined);
  }

  /** The host to use now; undefined when the name cannot be resolved or the cache is full of busy hosts. */
  async resolve(authority: string): Promise<Host | undefined> {
    const parsed = parseAuthority(authority, this.#options.defaultPort);
    if (parsed === undefined) return undefined;
    const key = `${parsed.host}:${parsed.port}`;
    const now = this.#options.clock.monotonicMs();
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      this.#expire(now);
      if (this.#entries.size >= this.#options.maxHosts && !this.#evictOldest()) return undefined;
      const { host: name, port } = parsed;
      entry = { key, name, port, host: undefined, usedAtMs: now, failures: 0, pending: undefined, timer: undefined };
    }
    // Re-inserting keeps the map ordered by use.
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    entry.usedAtMs = now;
    return entry.host ?? this.#ask(entry);
  }

  stop(): void {
    for (const entry of this.#entries.values()) this.#drop(entry);
  }

  /** An answer serves until the next one comes: no request but a host's first waits for one. */
  #ask(entry: Entry): Promise<Host | undefined> {
    entry.pending ??= this.#lookUp(entry).finally(() => {
      entry.pending = undefined;
    });
    return entry.pending;
  }

  async #lookUp(entry: Entry): Promise<Host | undefined> {
    const { refresh, random, log, isDenied } = this.#options;
    let waitMs: number;
    try {
      const { addresses, ttlMs } = await this.#answer(entry.name);
      entry.failures = 0;
      const ip = addresses.find((each) => !isDenied(each));
      if (ip === undefined && addresses.length > 0)
        log.warning("the name of a host leads to addresses that are denied", { name: entry.name });
      if (ip !== undefined && this.#isKept(entry)) this.#take(entry, ip);
      waitMs = refreshAfterAnswerMs(refresh, ip === undefined ? undefined : ttlMs, random);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log.debug("cannot resolve a request's authority", { name: entry.name, reason });
      entry.failures += 1;
      waitMs = refreshAfterFailureMs(refresh, entry.failures, random);
    }
    if (!this.#isKept(entry)) return undefined;
    // The next request asks again.
    if (entry.host === undefined) this.#entries.delete(entry.key);
    else if (isIP(entry.name) === 0) this.#askLater(entry, waitMs);
    return entry.host;
  }

  #isKept(entry: Entry): boolean {
    return this.#entries.get(entry.key) === entry;
  }

  #askLater(entry: Entry, waitMs: number): void {
    const { clock, hostTtlMs } = this.#options;
    entry.timer = clock.setTimer(() => {
      const isForgotten = clock.monotonicMs() - entry.usedAtMs >= hostTtlMs && (entry.host?.activeRequests ?? 0) === 0;
      if (isForgotten) this.#drop(entry);
      else void this.#ask(entry);
    }, waitMs);
  }

  async #answer(name: string): Promise<DnsAnswer> {
    const { lookup, family, queryTimeoutMs, clock } = this.#options;
    if (isIP(name) !== 0) return { addresses: [name] };
    if (queryTimeoutMs === 0) return lookup(name, family);
    const { promise, reject } = Promise.withResolvers<DnsAnswer>();
    const timer = clock.setTimer(() => reject(new Error("no answer in time")), queryTimeoutMs);
    try {
      return await Promise.race([lookup(name, family), promise]);
    } finally {
      clock.clearTimer(timer);
    }
  }

  #take(entry: Entry, ip: string): void {
    const old = entry.host;
    if (old !== undefined && old.address.type === "ip" && old.address.ip === ip) return;
    entry.host = new Host({ type: "ip", ip, port: entry.port }, entry.name, 1, {}, true);
    if (old !== undefined) retire(old);
  }

  #expire(now: number): void {
    for (const entry of this.#entries.values()) {
      if (now - entry.usedAtMs < this.#options.hostTtlMs) break;
      if ((entry.host?.activeRequests ?? 0) === 0) this.#drop(entry);
    }
  }

  #evictOldest(): boolean {
    for (const entry of this.#entries.values()) {
      if (entry.pending !== undefined || (entry.host?.activeRequests ?? 0) > 0) continue;
      this.#drop(entry);
      return true;
    }
    return false;
  }

  #drop(entry: Entry): void {
    this.#entries.delete(entry.key);
    this.#options.clock.clearTimer(entry.timer);
    if (entry.host !== undefined) retire(entry.host);
  }
}

function retire(host: Host): void {
  host.active = false;
  drainHostPool(host);
}
