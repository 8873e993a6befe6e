// The public face of the DNS server beside a workload; apart from the package's own, since few processes need it.
export { type DnsAddress, startDnsServer } from "./dns-server.ts";
export { type Forwarding, type NameServer } from "./forwarder.ts";
export { type NameEntry, NameTable, type NameTableOptions } from "./name-table.ts";
export { forwardingOf, ResolverFile } from "./resolver-file.ts";
export { readResolverSettings, type ResolverSettings } from "./resolver-settings.ts";
