// The public face of the listening package: what a port that any program of the machine may knock at needs, so that a
// crowd keeps nobody out.
export * from "./accept-backlog.ts";
export * from "./descriptor-reserve.ts";
export * from "./guarded-listener.ts";
export * from "./inherited-descriptors.ts";
export * from "./joined-connections.ts";
export * from "./oldest-makes-way.ts";
export * from "./reachable-addresses.ts";
export * from "./way-in.ts";
