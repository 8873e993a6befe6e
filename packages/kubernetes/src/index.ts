// The public face of the kubernetes package: how a cluster's API is reached, and a store that follows it.
export * from "./names.ts";
export * from "./client/cluster-access.ts";
export * from "./client/in-cluster.ts";
export * from "./client/kubeconfig.ts";
export * from "./client/kubernetes-client.ts";
export * from "./client/kubernetes-error.ts";
export * from "./follow/object-follower.ts";
export * from "./store/kubernetes-store.ts";
export * from "./identity/token-review.ts";
export * from "./install/custom-resources.ts";
export * from "./inject/capture-container.ts";
export * from "./inject/sidecar-container.ts";
export * from "./install/components.ts";
export * from "./inject/inject-pod.ts";
export { jsonPatch, type PatchOperation } from "./inject/json-patch.ts";
export { defaultValues, type InjectionValues, readValues } from "./inject/values.ts";
