/** What a ServiceEntry comes to: its hosts, how they are found, their addresses. */

interface Entry {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
  readonly spec: { readonly hosts: readonly string[]; readonly resolution?: EntryResolution };
}

/** With DYNAMIC_DNS the host that a request or a TLS connection names is looked up, of all that a wildcard covers. */
export type EntryResolution = "NONE" | "STATIC" | "DNS" | "DNS_ROUND_ROBIN" | "DYNAMIC_DNS";

export function entryResolution({ spec }: Entry): EntryResolution {
  return spec.resolution ?? "NONE";
}

/** As clients' names are compared with them: in lower case and without a trailing dot. */
export function entryHosts({ spec }: Entry): readonly string[] {
  return spec.hosts.map((host) => host.toLowerCase().replace(/\.$/, ""));
}

/** Istio's label: `false` leaves hosts without an address where none is written. */
const allocationLabel = "networking.istio.io/enable-autoallocate-ip";

/**
 * Whether hosts that have no address get one, by which captured workloads find them. Where clients look up themselves
 * (NONE), it would keep them from the host.
 */
export function allocatesAddresses(entry: Entry): boolean {
  return entry.metadata.labels?.[allocationLabel] !== "false" && entryResolution(entry) !== "NONE";
}
