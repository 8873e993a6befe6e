// The public face of the capture package: what the machine's kernel tells of connections.
export * from "./socket-owner.ts";
export * from "./processes.ts";
export * from "./own-programs.ts";
export { originalDestination, unixSocketPeer } from "./kernel.ts";
