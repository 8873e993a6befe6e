// The public face of the DNS servers beside a workload and of a cluster; apart from the package's own, since few
// processes need it.
export { type DnsAddress, startDnsServer } from "./dns-server.ts";
export { ClusterDns, type ClusterDnsOptions } from "./cluster-dns.ts";
export { type Forwarding, type NameServer } from "./forwarder.ts";
export { type NameEntry, NameTable, type NameTableOptions } from "./name-table.ts";
export { type PodResolver, podResolverFile } from "./pod-resolver-file.ts";
export { forwardingOf, ResolverFile } from "./resolver-file.ts";
export { readResolverSettings, type ResolverSettings } from "./resolver-settings.ts";
