/**
 * `MeshResource`: every object that the mesh knows, as a union told apart by `kind`. The types come from the schemas;
 * what is typed as present is present, because only checked objects become resources.
 */
import { isDeepStrictEqual } from "node:util";
import type { ResourceKey } from "../findings/finding.ts";
import type { ObjectMeta } from "./metadata.ts";
import type { Infer } from "../schema/schema.ts";
import { isKind, kindDefinitions } from "./kinds.ts";
import type { Kind } from "./kinds.ts";

type Simplify<T> = { readonly [K in keyof T]: T[K] };

export type ResourceOf<K extends Kind> = {
  [P in K]: Simplify<
    { apiVersion: string; kind: P; metadata: Simplify<ObjectMeta> } & Omit<
      Infer<(typeof kindDefinitions)[P]["schema"]>,
      "metadata"
    >
  >;
}[K];

export type MeshResource = ResourceOf<Kind>;

export type Namespace = ResourceOf<"Namespace">;
export type ServiceAccount = ResourceOf<"ServiceAccount">;
export type Service = ResourceOf<"Service">;
export type EndpointSlice = ResourceOf<"EndpointSlice">;
export type Pod = ResourceOf<"Pod">;
export type Deployment = ResourceOf<"Deployment">;
export type Gateway = ResourceOf<"Gateway">;
export type VirtualService = ResourceOf<"VirtualService">;
export type DestinationRule = ResourceOf<"DestinationRule">;
export type AuthorizationPolicy = ResourceOf<"AuthorizationPolicy">;
export type RequestAuthentication = ResourceOf<"RequestAuthentication">;
export type PeerAuthentication = ResourceOf<"PeerAuthentication">;
export type Secret = ResourceOf<"Secret">;
export type ConfigMap = ResourceOf<"ConfigMap">;
export type Telemetry = ResourceOf<"Telemetry">;
export type BrowserLogin = ResourceOf<"BrowserLogin">;
export type Rollout = ResourceOf<"Rollout">;
export type ServiceEntry = ResourceOf<"ServiceEntry">;
export type WorkloadEntry = ResourceOf<"WorkloadEntry">;

export type GatewayServer = Gateway["spec"]["servers"][number];
export type HttpRoute = NonNullable<VirtualService["spec"]["http"]>[number];
export type TlsRoute = NonNullable<VirtualService["spec"]["tls"]>[number];
export type TcpRoute = NonNullable<VirtualService["spec"]["tcp"]>[number];
export type TlsMatch = TlsRoute["match"][number];
export type TcpMatch = NonNullable<TcpRoute["match"]>[number];
export type HttpMatch = NonNullable<HttpRoute["match"]>[number];
export type WeightedDestination = NonNullable<HttpRoute["route"]>[number];
export type Destination = WeightedDestination["destination"];
export type Retries = NonNullable<HttpRoute["retries"]>;
export type Subset = NonNullable<DestinationRule["spec"]["subsets"]>[number];
export type TrafficPolicy = NonNullable<DestinationRule["spec"]["trafficPolicy"]>;
export type ClientTls = NonNullable<TrafficPolicy["tls"]>;
export type ServicePort = Service["spec"]["ports"][number];
export type AuthorizationRule = NonNullable<AuthorizationPolicy["spec"]["rules"]>[number];
export type AuthorizationSource = NonNullable<AuthorizationRule["from"]>[number]["source"];
export type AuthorizationOperation = NonNullable<AuthorizationRule["to"]>[number]["operation"];
export type AuthorizationCondition = NonNullable<AuthorizationRule["when"]>[number];
export type JwtRule = NonNullable<RequestAuthentication["spec"]["jwtRules"]>[number];
export type RolloutSpec = Rollout["spec"];
export type RolloutVersion = RolloutSpec["canary"];
export type RolloutStep = NonNullable<RolloutSpec["strategy"]["canary"]>["steps"][number];
export type RolloutAnalysis = NonNullable<RolloutStep["analysis"]>;
export type RolloutMetric = RolloutAnalysis["metrics"][number];
export type HeaderRouteMatch = NonNullable<NonNullable<RolloutStep["setHeaderRoute"]>["match"]>;
export type RolloutFreeze = NonNullable<RolloutSpec["freeze"]>;
export type Endpoint = EndpointSlice["endpoints"][number];

export const defaultNamespace = "default";

export function keyOf(resource: MeshResource): ResourceKey & { readonly kind: Kind } {
  return { kind: resource.kind, namespace: resource.metadata.namespace, name: resource.metadata.name };
}

/** A key as one string, for maps: `VirtualService/shop/catalog`, `Namespace//shop`. */
export function keyText(key: ResourceKey): string {
  return `${key.kind}/${key.namespace}/${key.name}`;
}

/** The namespace that an object of `kind` has: its own, `default` when missing, '' for kinds without namespaces. */
export function effectiveNamespace(kind: string, namespace: string | undefined): string {
  if (isKind(kind) && kindDefinitions[kind].scope === "Cluster") return "";
  return namespace === undefined || namespace === "" ? defaultNamespace : namespace;
}

/** Whether two versions of an object say the same: equal but for the version that a store writes into it. */
export function sameContent(one: MeshResource, other: MeshResource): boolean {
  const { resourceVersion: _one, ...oneMetadata } = one.metadata;
  const { resourceVersion: _other, ...otherMetadata } = other.metadata;
  return isDeepStrictEqual({ ...one, metadata: oneMetadata }, { ...other, metadata: otherMetadata });
}
