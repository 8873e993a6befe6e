/**
 * Names of the containers that injection adds to a pod, Tulle's and Istio's, which no image may use for anything else.
 */

export const proxyContainers: ReadonlySet<string> = new Set(["tulle-proxy", "istio-proxy"]);

export const injectedContainers: ReadonlySet<string> = new Set([
  ...proxyContainers,
  "tulle-capture",
  "tulle-validation",
  "istio-init",
  "istio-validation",
]);
