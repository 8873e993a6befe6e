// Names to addresses by the system's resolver, so that /etc/hosts counts as it does for every other program.
import { lookup } from "node:dns/promises";

/** Envoy: Cluster.DnsLookupFamily. */
export type DnsLookupFamily = "auto" | "v4_only" | "v6_only" | "v4_preferred" | "all";

/** Addresses in the order in which they are to be used; an unknown name or a failing resolver rejects. */
export type DnsLookup = (hostname: string, family: DnsLookupFamily) => Promise<readonly string[]>;

function preferred(
  addresses: readonly { readonly address: string; readonly family: number }[],
  family: 4 | 6,
): string[] {
  const first = addresses.filter((entry) => entry.family === family);
  return (first.length > 0 ? first : addresses).map((entry) => entry.address);
}

export const systemDnsLookup: DnsLookup = async (hostname, family) => {
  const only = family === "v4_only" ? 4 : family === "v6_only" ? 6 : 0;
  const addresses = await lookup(hostname, { all: true, family: only, order: "verbatim" });
  const unique = addresses.filter(
    (entry, index) => addresses.findIndex((other) => other.address === entry.address) === index,
  );
  // Envoy's AUTO is IPv6 with IPv4 as the fallback (Cluster.DnsLookupFamily).
  if (family === "auto") return preferred(unique, 6);
  if (family === "v4_preferred") return preferred(unique, 4);
  return unique.map((entry) => entry.address);
};
