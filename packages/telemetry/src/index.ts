// The public face of the telemetry package: logs and metrics that every other package takes by hand-over.
export * from "./log.ts";
export * from "./metrics.ts";
export * from "./printable.ts";
export * from "./repeated-warning.ts";
export * from "./seldom-warning.ts";
export * from "./trouble.ts";
export * from "./write-lines.ts";
