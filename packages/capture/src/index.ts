// The public face of the capture package: what the machine's kernel tells of connections, and where it leads them.
export * from "./socket-owner.ts";
export * from "./processes.ts";
export * from "./own-programs.ts";
export { originalDestination, unixSocketPeer } from "./kernel.ts";
export * from "./rules/capture-plan.ts";
export { captureRules, captureTable } from "./rules/capture-rules.ts";
export * from "./rules/nft.ts";
export { nameserversOf } from "./rules/resolvers.ts";
