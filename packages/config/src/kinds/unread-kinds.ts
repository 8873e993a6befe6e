/**
 * Kinds of Istio's API that nothing reads yet. Manifests may hold them, and a finding says what a mesh without them
 * does: where that is more than was written, the finding is an error. docs/istio-api.md is made of this.
 */

export interface UnreadKind {
  /** What it is for, in a few words. */
  readonly description: string;
  /** What the mesh does without it, where that is wider than it was written. */
  readonly otherwise?: string;
}

export const unreadKinds: Readonly<Record<string, UnreadKind>> = {
  EnvoyFilter: {
    description: "Changes to what Envoys are told.",
    otherwise: "what it refuses or limits passes",
  },
  ProxyConfig: { description: "Settings of proxies." },
  Sidecar: {
    description: "What a workload's sidecar reaches and takes.",
    otherwise: "workloads reach every Service, and hosts outside as the mesh's configuration says",
  },
  TrafficExtension: {
    description: "Programs (Wasm, Lua) on the way of requests.",
    otherwise: "what it refuses or limits passes",
  },
  WasmPlugin: {
    description: "Programs (Wasm) on the way of requests.",
    otherwise: "what it refuses or limits passes",
  },
};

/** API groups whose kinds these are; others have kinds of the same names. */
const istioGroup = /^(networking|security|telemetry|extensions)\.(istio|tulle)\.io\//;

export function isUnreadKind(kind: string, apiVersion: unknown): boolean {
  if (!Object.hasOwn(unreadKinds, kind)) return false;
  return typeof apiVersion !== "string" || istioGroup.test(apiVersion);
}
