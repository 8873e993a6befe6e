// Services and EndpointSlices as Kubernetes writes them, as far as a node's rules are made of them, and the nodes.

export interface ClusterService {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly creationTimestamp?: string };
  /** Of the cluster itself: before all others, whatever these say of their age. */
  readonly isOfCluster?: true;
  readonly spec: {
    readonly type?: string;
    readonly clusterIP?: string;
    readonly clusterIPs?: readonly string[];
    readonly ports: readonly ClusterServicePort[];
    readonly externalIPs?: readonly string[];
    readonly externalTrafficPolicy?: TrafficPolicy;
    readonly internalTrafficPolicy?: TrafficPolicy;
    readonly sessionAffinity?: string;
    readonly sessionAffinityConfig?: { readonly clientIP?: { readonly timeoutSeconds?: number } };
    readonly ipFamilies?: readonly string[];
    readonly ipFamilyPolicy?: string;
  };
}

export type TrafficPolicy = "Cluster" | "Local";

export interface ClusterServicePort {
  readonly name?: string;
  readonly port: number;
  readonly protocol?: string;
  readonly nodePort?: number;
}

export interface ClusterEndpointSlice {
  readonly metadata: { readonly namespace: string; readonly labels?: Readonly<Record<string, string>> };
  readonly addressType: string;
  readonly ports: readonly { readonly name?: string; readonly port?: number; readonly protocol?: string }[];
  readonly endpoints: readonly ClusterEndpoint[];
}

export interface ClusterEndpoint {
  readonly addresses: readonly string[];
  readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean };
  readonly hostname?: string;
  readonly nodeName?: string;
}

/** A machine with pods, or what stands for one. */
export interface ServiceNode {
  /** As endpoints name it. */
  readonly name: string;
  /** Where its node ports are. */
  readonly addresses: readonly string[];
  /** Its own pods' (`10.244.1.0/24`). */
  readonly podRanges: readonly string[];
}

/** What of a Service cannot be. It is told, and the rest holds. */
export interface ServiceProblem {
  readonly service: { readonly name: string; readonly namespace: string };
  /** The field, such as `spec.externalIPs[0]`. */
  readonly path: string;
  /** One sentence without its stop. */
  readonly message: string;
}

export const serviceNameLabel = "kubernetes.io/service-name";

export function serviceKey({ metadata }: Pick<ClusterService, "metadata">): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** The cluster's own first, then the oldest, then by name: who has had something keeps it. */
export function inOrderOfAge<T extends Pick<ClusterService, "metadata" | "isOfCluster">>(
  services: readonly T[],
): readonly T[] {
  const place = ({ metadata: { creationTimestamp = "", namespace, name }, isOfCluster }: T): string =>
    `${isOfCluster === true ? 0 : 1} ${creationTimestamp} ${namespace}/${name}`;
  return services
    .map((service) => ({ service, place: place(service) }))
    .sort((a, b) => (a.place < b.place ? -1 : 1))
    .map(({ service }) => service);
}

/** Addresses in the order in which they are written, without what says that there is none. */
export function clusterAddresses({ spec }: Pick<ClusterService, "spec">): readonly string[] {
  const { clusterIP, clusterIPs = clusterIP === undefined ? [] : [clusterIP] } = spec;
  return clusterIPs.filter((address) => address !== "" && address !== "None");
}

export function isHeadless({ spec }: Pick<ClusterService, "spec">): boolean {
  return spec.clusterIP === "None" || spec.clusterIPs?.[0] === "None";
}
