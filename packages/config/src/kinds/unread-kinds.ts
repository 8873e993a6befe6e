/**
 * Kinds of Istio's API that nothing reads yet. Manifests may hold them, and a finding says what a mesh without them
 * does: where that is more than was written, the finding is an error. docs/istio-api.md is made of this.
 */

export interface UnreadKind {
  /** What it is for, in a few words. */
  readonly description: string;
  /** What the mesh does without it, where that is wider than it was written. */
  readonly otherwise?: string;
  readonly plural: string;
  /** Every `apiVersion` that Istio serves it in. */
  readonly apiVersions: readonly string[];
}

export const unreadKinds: Readonly<Record<string, UnreadKind>> = {
  EnvoyFilter: {
    description: "Changes to what Envoys are told.",
    otherwise: "what it refuses or limits passes",
    plural: "envoyfilters",
    apiVersions: ["networking.istio.io/v1alpha3"],
  },
  ProxyConfig: {
    description: "Settings of proxies.",
    plural: "proxyconfigs",
    apiVersions: ["networking.istio.io/v1beta1"],
  },
  Sidecar: {
    description: "What a workload's sidecar reaches and takes.",
    otherwise: "workloads reach every Service, and hosts outside as the mesh's configuration says",
    plural: "sidecars",
    apiVersions: ["networking.istio.io/v1", "networking.istio.io/v1beta1", "networking.istio.io/v1alpha3"],
  },
  TrafficExtension: {
    description: "Programs (Wasm, Lua) on the way of requests.",
    otherwise: "what it refuses or limits passes",
    plural: "trafficextensions",
    apiVersions: ["extensions.istio.io/v1alpha1"],
  },
  WasmPlugin: {
    description: "Programs (Wasm) on the way of requests.",
    otherwise: "what it refuses or limits passes",
    plural: "wasmplugins",
    apiVersions: ["extensions.istio.io/v1alpha1"],
  },
};

/** API groups whose kinds these are; others have kinds of the same names. */
const istioGroup = /^(networking|security|telemetry|extensions)\.(istio|tulle)\.io\//;

export function isUnreadKind(kind: string, apiVersion: unknown): boolean {
  if (!Object.hasOwn(unreadKinds, kind)) return false;
  return typeof apiVersion !== "string" || istioGroup.test(apiVersion);
}
