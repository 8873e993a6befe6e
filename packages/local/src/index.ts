/** `@tulle/local`: runs the Deployments of a mesh as processes of this machine. */
export type { SupervisorEvent } from "./supervisor-event.ts";
export type { UpOptions } from "./supervisor.ts";
export { CannotStart } from "./cannot-start.ts";
export { enterOwnNetwork, type OwnNetwork } from "./namespaces/own-network.ts";
export { Supervisor } from "./supervisor.ts";
export type { LocalPod, PodPhase } from "./pod/local-pod.ts";
export type { EntryAnswer, EntryRequest, LocalhostPort, PodEntry } from "./pod/pod-entry.ts";
export type { PlanProblem, ProxyKind } from "./pod/pod-plan.ts";
export { sidecarNodeOptions } from "./pod/sidecar.ts";
export type { ProcessEnd, RestartPolicy } from "./process/supervised-process.ts";
export { parsePortMappings, publishAnnotation, type PortMapping } from "./reconcile/published-port-mappings.ts";
export { appAddressAnnotation } from "./reconcile/pod-resource.ts";
export { FolderInUse } from "./state-directory.ts";
