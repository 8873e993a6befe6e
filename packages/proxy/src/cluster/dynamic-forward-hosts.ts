// Hosts of a dynamic_forward_proxy cluster: the authority of a request is resolved by DNS, with a bounded cache
// (extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig).
import { isIP } from "node:net";
import type { Logger } from "@tulle/telemetry";
import { drainHostPool } from "../upstream/host-pool.ts";
import { Host } from "./cluster.ts";
import type { DnsLookup, DnsLookupFamily } from "./dns-lookup.ts";

export interface DynamicForwardHostsOptions {
  readonly lookup: DnsLookup;
  readonly family: DnsLookupFamily;
  /** One more host pushes out the one that was used longest ago; none is pushed out while it serves a request. */
  readonly maxHosts: number;
  readonly hostTtlMs: number;
  /** An answer older than this is asked for anew before it is used. */
  readonly refreshIntervalMs: number;
  /** Port of an authority that names none. */
  readonly defaultPort: number;
  readonly log: Logger;
  readonly nowMs: () => number;
}

interface Entry {
  readonly key: string;
  host: Host | undefined;
  usedAtMs: number;
  resolvedAtMs: number;
  pending: Promise<Host | undefined> | undefined;
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
    const now = this.#options.nowMs();
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      this.#expire(now);
      if (this.#entries.size >= this.#options.maxHosts && !this.#evictOldest()) return undefined;
      entry = { key, host: undefined, usedAtMs: now, resolvedAtMs: Number.NEGATIVE_INFINITY, pending: undefined };
    }
    // Re-inserting keeps the map ordered by use.
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    entry.usedAtMs = now;
    if (entry.host !== undefined && now - entry.resolvedAtMs < this.#options.refreshIntervalMs) return entry.host;
    entry.pending ??= this.#lookUp(entry, parsed.host, parsed.port).finally(() => {
      entry.pending = undefined;
    });
    // A stale answer serves while the new one is fetched.
    return entry.host ?? entry.pending;
  }

  stop(): void {
    for (const entry of this.#entries.values()) this.#drop(entry);
  }

  async #lookUp(entry: Entry, name: string, port: number): Promise<Host | undefined> {
    try {
      const addresses = isIP(name) === 0 ? await this.#options.lookup(name, this.#options.family) : [name];
      const ip = addresses[0];
      if (ip !== undefined) this.#take(entry, ip, port, name);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.log.debug("cannot resolve a request's authority", { name, reason });
    }
    entry.resolvedAtMs = this.#options.nowMs();
    if (entry.host === undefined && this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key);
    return entry.host;
  }

  #take(entry: Entry, ip: string, port: number, hostname: string): void {
    const old = entry.host;
    if (old !== undefined && old.address.type === "ip" && old.address.ip === ip) return;
    entry.host = new Host({ type: "ip", ip, port }, hostname, 1, {}, true);
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
    if (entry.host !== undefined) retire(entry.host);
  }
}

function retire(host: Host): void {
  host.active = false;
  drainHostPool(host);
}
