// The entry of the package: the control plane as a whole.
export { type ControlPlaneOptions, type RunningControlPlane, runControlPlane } from "./run-control-plane.ts";
export type { Replicas } from "./machines/machine-entries.ts";
export { StateFolder } from "./state/state-folder.ts";
export { type RunningManifestControlPlane, runManifestControlPlane } from "./run-manifest-control-plane.ts";
export { checkResource } from "./snapshot/check-resource.ts";
