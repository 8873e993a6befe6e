// The entry `@tulle/control-plane/stages`: the pure stages of a configuration change, for tests, simulation and
// commands that explain what a proxy would be told.
export { buildEndpoints } from "./snapshot/build-endpoints.ts";
export { buildSnapshot, type SnapshotOptions } from "./snapshot/build-snapshot.ts";
export type { ResourceReader } from "./snapshot/resource-reader.ts";
export type { EndpointSnapshot, MeshEndpoint, MeshService, MeshSnapshot } from "./snapshot/mesh-snapshot.ts";
export { AcceptedResources } from "./serve/accepted-resources.ts";
export { parseNode, type Proxy } from "./scope/proxy.ts";
export type { ProxyView } from "./scope/proxy-view.ts";
export { scope } from "./scope/scope.ts";
export { type ProxyResources, TranslationCache } from "./serve/translation-cache.ts";
export { defaultJwksTimes } from "./jwks/jwks-keys.ts";
