// /etc/resolv.conf, as far as a forwarder and the rules of capture need it (resolv.conf(5)).
import { isIP } from "node:net";

export interface ResolverSettings {
  /** Addresses of name servers, in order; those who know none ask the machine itself. */
  readonly servers: readonly string[];
  /** Whether the file knows any. */
  readonly namesServers: boolean;
  readonly searchDomains: readonly string[];
  /** A name with fewer dots is looked for in the search domains first. */
  readonly ndots: number;
  readonly timeoutMs: number;
  readonly attempts: number;
}

/** Far more than the C library reads of it; a longer one is no such file. */
export const maxResolverFileBytes = 65_536;

/** MAXNS of the C library. */
const maxServers = 3;
const defaultTimeoutSeconds = 5;
const defaultAttempts = 2;
const defaultNdots = 1;
/** The C library's own limits. */
const maxTimeoutSeconds = 30;
const maxAttempts = 5;
const maxNdots = 15;

/** Addresses of all name servers, in order, with their zones (`fe80::1%eth0`). */
export function nameserversIn(text: string): readonly string[] {
  return linesOf(text).flatMap(([keyword, address = ""]) =>
    keyword === "nameserver" && isIP(address.replace(/%.*$/, "")) !== 0 ? [address] : [],
  );
}

/** Words of each line, without comments. */
function linesOf(text: string): readonly (readonly string[])[] {
  return text.split("\n").map((line) =>
    line
      .replace(/[#;].*$/, "")
      .trim()
      .split(/\s+/),
  );
}

export function readResolverSettings(text: string): ResolverSettings {
  const servers = nameserversIn(text).slice(0, maxServers);
  let searchDomains: readonly string[] = [];
  const options = new Map<string, number>();
  for (const [keyword, ...words] of linesOf(text)) {
    if (keyword === "search" || keyword === "domain") {
      // The last of them counts.
      searchDomains = words.map((domain) => domain.replace(/\.$/, "")).filter((domain) => domain !== "");
    } else if (keyword === "options") {
      for (const word of words) {
        const [name = "", value = ""] = word.split(":");
        if (/^\d+$/.test(value)) options.set(name, Number(value));
      }
    }
  }
  const seconds = Math.min(options.get("timeout") ?? defaultTimeoutSeconds, maxTimeoutSeconds);
  return {
    servers: servers.length === 0 ? ["127.0.0.1"] : servers,
    namesServers: servers.length > 0,
    searchDomains,
    ndots: Math.min(options.get("ndots") ?? defaultNdots, maxNdots),
    timeoutMs: Math.max(seconds, 1) * 1000,
    attempts: Math.min(Math.max(options.get("attempts") ?? defaultAttempts, 1), maxAttempts),
  };
}
