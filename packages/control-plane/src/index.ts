// The entry of the package: the control plane as a whole, and the shapes of its status pages.
export { type ControlPlaneOptions, type RunningControlPlane, runControlPlane } from "./run-control-plane.ts";
export { StateFolder } from "./state/state-folder.ts";
export { type RunningManifestControlPlane, runManifestControlPlane } from "./run-manifest-control-plane.ts";
export type { ProxySync, StatusType, TypeSync } from "./api/sync-status.ts";
export { statusTypes } from "./api/sync-status.ts";
export type { AuthorityStatus, CertificateStatus } from "./api/ca-routes.ts";
export type { ResourceStatus } from "./api/resource-routes.ts";
export type { ResourceRejection } from "./serve/resource-status.ts";
