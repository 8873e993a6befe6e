// The public face of the timing package: when work is done, wherever that is decided. The data path has a clock of its
// own (packages/proxy/src/worker/clock.ts), with the rounds of its event loop.
export * from "./back-off.ts";
export * from "./clock.ts";
export * from "./in-slices.ts";
export * from "./pauses.ts";
