// The public face of the proxy package: a whole proxy in this process, and the pure parts that explain and simulate it.
export { BootstrapError, parseBootstrap, readBootstrap } from "./bootstrap/read-bootstrap.ts";
export { compileCluster } from "./compile/compile-cluster.ts";
export { compileEndpoints } from "./compile/compile-endpoints.ts";
export { compileListener } from "./listener/compile-listener.ts";
export { compileRouteConfiguration } from "./compile/compile-route-configuration.ts";
export { type CompileScope, detachedScope } from "./fields/compile-scope.ts";
export { type CompileProblem, type Compiled, problemText } from "./fields/problems.ts";
export { HeaderMap } from "./http/header-map.ts";
export { StreamInfo } from "./http/stream-info.ts";
export { HttpConnectionManager } from "./http-connection-manager/http-connection-manager.ts";
export { type ProxyOptions, type RunningProxy, runProxy } from "./run-proxy.ts";
export type { DrainTimes } from "./listener/listener-host.ts";
export { validateBootstrap } from "./bootstrap/validate-bootstrap.ts";
