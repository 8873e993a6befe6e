// /etc/resolv.conf, as far as a forwarder needs it (resolv.conf(5)).
import { isIP } from "node:net";

export interface ResolverSettings {
  /** Addresses of name servers, in order; those who know none ask the machine itself. */
  readonly servers: readonly string[];
  readonly searchDomains: readonly string[];
  readonly timeoutMs: number;
  readonly attempts: number;
}

/** MAXNS of the C library. */
const maxServers = 3;
const defaultTimeoutSeconds = 5;
const defaultAttempts = 2;
/** The C library's own limits. */
const maxTimeoutSeconds = 30;
const maxAttempts = 5;

export function readResolverSettings(text: string): ResolverSettings {
  const servers: string[] = [];
  let searchDomains: readonly string[] = [];
  const options = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [keyword = "", ...words] = line
      .replace(/[#;].*$/, "")
      .trim()
      .split(/\s+/);
    if (keyword === "nameserver" && words[0] !== undefined && isIP(words[0].replace(/%.*$/, "")) !== 0) {
      if (servers.length < maxServers) servers.push(words[0]);
    } else if (keyword === "search" || keyword === "domain") {
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
    searchDomains,
    timeoutMs: Math.max(seconds, 1) * 1000,
    attempts: Math.min(Math.max(options.get("attempts") ?? defaultAttempts, 1), maxAttempts),
  };
}
