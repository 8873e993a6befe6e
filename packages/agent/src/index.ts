// The entry of the package: the agent beside a workload.
export * from "./bootstrap/bootstrap.ts";
export * from "./bootstrap/peer-metadata.ts";
export type { RunningDataPlane } from "./data-plane/data-plane.ts";
export { healthPath, healthPort } from "./health-address.ts";
export { startRelay, type RelayOptions, type RunningRelay } from "./relay/relay.ts";
export { agentExitCodes, runAgent, type AgentOptions } from "./run-agent.ts";
export { agentVariables, parseSettings, type AgentSettings } from "./settings.ts";
