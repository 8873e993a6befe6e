// Looks names up as Envoy does: /etc/hosts, then the name servers of /etc/resolv.conf with its search domains, or those
// that a cluster names (typed_dns_resolver_config). Every wait has an end, and nothing is kept.
import { Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import {
  FollowedFile,
  maxHostsFileBytes,
  maxResolverFileBytes,
  readHosts,
  readResolverSettings,
  type ResolverSettings,
} from "@tulle/capture/dns-settings";
import { type Clock, systemClock } from "@tulle/timing";
import { askForFamily, type DnsAnswer, type DnsLookup, type DnsLookupFamily } from "./dns-lookup.ts";

export interface DnsResolverOptions {
  /** `address:port` or `[address]:port`; undefined = those of resolv.conf. */
  readonly servers?: readonly string[] | undefined;
  /** The servers above are only for a machine whose resolv.conf names none. */
  readonly isFallback?: boolean;
  readonly usesSearchDomains?: boolean;
  /** Of the first try; undefined = what resolv.conf says. */
  readonly timeoutMs?: number | undefined;
  readonly tries?: number | undefined;
  readonly hostsPath?: string;
  readonly resolverPath?: string;
  readonly clock?: Clock;
}

/** However many search domains and servers there are, a look-up begins no further question after it. */
const maxLookupMs = 30_000;
const nothing: DnsAnswer = { addresses: [] };
/** The server says nothing of the name: another one may. */
const refusals: ReadonlySet<string> = new Set(["ESERVFAIL", "EREFUSED", "ENOTIMP", "EFORMERR", "EBADRESP"]);
/** The last one: it is none that DNS can carry. With a search domain behind it, one may be too long. */
const noSuchName: ReadonlySet<string> = new Set(["ENOTFOUND", "ENODATA", "EBADNAME"]);

/** Whom the questions of a look-up are put to. */
interface Channel {
  /** Asks the servers in turn where one is silent. */
  readonly all: Resolver;
  /** One for each, since a refusal of the first is taken for its answer by Node's. */
  each(): readonly Resolver[];
}

export class DnsResolver {
  readonly #options: DnsResolverOptions;
  readonly #clock: Clock;
  readonly #hosts: FollowedFile<ReturnType<typeof readHosts>>;
  readonly #settings: FollowedFile<ResolverSettings>;
  /** Look-ups under way: several clusters lead to one name. */
  readonly #pending = new Map<string, Promise<DnsAnswer>>();

  constructor(options: DnsResolverOptions = {}) {
    const { clock = systemClock, hostsPath = "/etc/hosts", resolverPath = "/etc/resolv.conf" } = options;
    this.#options = options;
    this.#clock = clock;
    const initial = readHosts("");
    this.#hosts = new FollowedFile({ path: hostsPath, clock, read: readHosts, initial, maxBytes: maxHostsFileBytes });
    this.#settings = new FollowedFile({
      path: resolverPath,
      clock,
      read: readResolverSettings,
      initial: readResolverSettings(""),
      maxBytes: maxResolverFileBytes,
    });
  }

  readonly lookup: DnsLookup = (hostname, family) => {
    const key = `${family} ${hostname}`;
    let pending = this.#pending.get(key);
    if (pending === undefined) {
      pending = this.#lookUp(hostname, family).finally(() => this.#pending.delete(key));
      this.#pending.set(key, pending);
    }
    return pending;
  };

  async #lookUp(hostname: string, family: DnsLookupFamily): Promise<DnsAnswer> {
    if (isIP(hostname) !== 0) return { addresses: [hostname] };
    const name = hostname.toLowerCase();
    const deadlineMs = this.#clock.nowMs() + maxLookupMs;
    return askForFamily(family, (version) => this.#ofFamily(name, version, deadlineMs));
  }

  async #ofFamily(name: string, version: 4 | 6, deadlineMs: number): Promise<DnsAnswer> {
    const bare = name.replace(/\.$/, "");
    const known = this.#hosts.content().get(bare) ?? [];
    const ofVersion = known.filter((address) => isIP(address) === version);
    if (ofVersion.length > 0) return { addresses: ofVersion };
    // RFC 6761 §6.3: such a name is never asked for. A file that names it for one family alone means that one.
    if (bare === "localhost" || bare.endsWith(".localhost")) {
      return known.length > 0 ? nothing : { addresses: [version === 4 ? "127.0.0.1" : "::1"] };
    }
    const settings = this.#settings.content();
    const channel = this.#newChannel(settings);
    let failure: unknown;
    for (const candidate of this.#candidates(name, settings)) {
      if (this.#clock.nowMs() >= deadlineMs) break;
      try {
        const answer = await ask(channel, candidate, version);
        if (answer.addresses.length > 0) return answer;
      } catch (error) {
        failure ??= error;
        // Of a server that is silent the next name is not asked either.
        if (!refusals.has(codeOf(error))) break;
      }
    }
    if (failure !== undefined) throw failure;
    return nothing;
  }

  /** resolv.conf(5), `search` and `ndots`. */
  #candidates(name: string, { searchDomains, ndots }: ResolverSettings): readonly string[] {
    if (name.endsWith(".")) return [name.slice(0, -1)];
    if (this.#options.usesSearchDomains === false) return [name];
    const within = searchDomains.map((domain) => `${name}.${domain}`);
    return name.split(".").length - 1 >= ndots ? [name, ...within] : [...within, name];
  }

  /**
   * A new one for each look-up (50 µs of CPU): Node's resolver keeps one port for all that it asks at a time, and with
   * a port that nobody knows an answer is hard to forge (RFC 5452 §9.2). Envoy keeps a port for 100 questions.
   */
  #newChannel(settings: ResolverSettings): Channel {
    const { servers: own, isFallback = false, timeoutMs, tries } = this.#options;
    const servers = own === undefined || (isFallback && settings.namesServers) ? settings.servers : own;
    const timeout = timeoutMs ?? settings.timeoutMs;
    const attempts = tries ?? settings.attempts;
    const made = (list: readonly string[]): Resolver => {
      const resolver = new Resolver({ timeout, tries: attempts });
      resolver.setServers(list);
      return resolver;
    };
    return { all: made(servers), each: () => (servers.length < 2 ? [] : servers.map((server) => made([server]))) };
  }
}

async function ask(channel: Channel, name: string, version: 4 | 6): Promise<DnsAnswer> {
  try {
    return await askServers(channel.all, name, version);
  } catch (error) {
    if (!refusals.has(codeOf(error))) throw error;
    for (const resolver of channel.each()) {
      const answer = await askServers(resolver, name, version).catch(() => undefined);
      if (answer !== undefined) return answer;
    }
    throw error;
  }
}

async function askServers(resolver: Resolver, name: string, version: 4 | 6): Promise<DnsAnswer> {
  try {
    const records = await (version === 4 ? resolver.resolve4(name, ttlToo) : resolver.resolve6(name, ttlToo));
    const addresses = [...new Set(records.map(({ address }) => address))];
    return { addresses, ttlMs: Math.min(...records.map(({ ttl }) => ttl)) * 1000 };
  } catch (error) {
    if (noSuchName.has(codeOf(error))) return nothing;
    throw error;
  }
}

const ttlToo = { ttl: true } as const;

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "";
}

/** As a cluster looks names up that says nothing of it. */
export const systemDnsLookup: DnsLookup = new DnsResolver().lookup;
