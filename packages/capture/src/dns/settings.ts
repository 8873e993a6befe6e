// What programs of a machine read of its settings of names. Apart from the servers, which few processes need.
export { FollowedFile } from "./followed-file.ts";
export { type HostsTable, maxHostsFileBytes, readHosts } from "./hosts-file.ts";
export { maxResolverFileBytes, readResolverSettings, type ResolverSettings } from "./resolver-settings.ts";
