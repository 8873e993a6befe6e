// Endpoints → ClusterLoadAssignments, each endpoint with what the mesh knows of the workload behind it: the metrics of
// the caller take their destination labels from there.
import { selects } from "@tulle/config";
import { create } from "@bufbuild/protobuf";
import { HealthStatus } from "@tulle/xds/envoy/config/core/v3/health_check_pb";
import {
  type ClusterLoadAssignment,
  ClusterLoadAssignmentSchema,
} from "@tulle/xds/envoy/config/endpoint/v3/endpoint_pb";
import type { LbEndpoint } from "@tulle/xds/envoy/config/endpoint/v3/endpoint_components_pb";
import { LbEndpointSchema } from "@tulle/xds/envoy/config/endpoint/v3/endpoint_components_pb";
import { type EndpointSnapshot, type MeshEndpoint, servicePortKey } from "../snapshot/mesh-snapshot.ts";
import { type Metadata, MetadataSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { portTrafficPolicy } from "../scope/port-traffic-policy.ts";
import { byNetwork } from "./other-networks.ts";
import { istioMetadata, socketAddress } from "./messages.ts";
import type { OutboundCluster } from "./outbound-clusters.ts";
import { tlsModeKey } from "./upstream-tls.ts";

/** envoy.config.endpoint.v3.LocalityLbEndpoints.load_balancing_weight: 32 bits. */
const maxWeightSum = 4_294_967_295;

/** All that the endpoints of one cluster are made of. */
export interface EndpointsSection {
  readonly clusterName: string;
  /** Of the control plane: what callers' metrics say of where the workload runs. */
  readonly clusterId: string;
  readonly endpoints: readonly MeshEndpoint[];
  /** The caller's locality: each one that is farther away is asked when none that is nearer can be. */
  readonly near?: string;
}

/**
 * The endpoints of a cluster: those of its Service's port that carry the subset's labels, as far as the proxy can speak
 * to them. Where none of them is ready, those that end and still answer: the next ones may not be there yet.
 */
export function endpointsOf(
  cluster: OutboundCluster,
  { byServicePort, leaving }: Pick<EndpointSnapshot, "byServicePort" | "leaving">,
): readonly MeshEndpoint[] {
  const key = servicePortKey(cluster.service, cluster.port.number);
  const ready = reachedOf(cluster, byServicePort.get(key) ?? []);
  return ready.length > 0 ? ready : reachedOf(cluster, leaving.get(key) ?? []);
}

export function reachedOf(cluster: OutboundCluster, all: readonly MeshEndpoint[]): readonly MeshEndpoint[] {
  const { subset, reach, networks } = cluster;
  const reached = all.filter((endpoint) => isReached(endpoint, reach));
  const chosen = subset === undefined ? reached : reached.filter((endpoint) => selects(subset.labels, endpoint.labels));
  return byNetwork(chosen, networks, (endpoint) => isSpokenToByMutualTls(endpoint, cluster));
}

/** With the mesh's certificates (Istio: mtlsChecker). */
function isSpokenToByMutualTls({ tlsMode }: MeshEndpoint, { service, port, subset, reach }: OutboundCluster): boolean {
  if (reach === "mutual-tls") return true;
  if (reach !== "all") return false;
  const mode = portTrafficPolicy(service.rule, subset, port.number).tls?.mode;
  if (mode !== undefined) return mode === "ISTIO_MUTUAL";
  return tlsMode === "istio" && service.entry?.isExternal !== true;
}

function isReached({ refusesPlainText, tlsMode }: MeshEndpoint, reach: OutboundCluster["reach"]): boolean {
  switch (reach) {
    case "none":
      return false;
    case "plain-text":
      return refusesPlainText !== true;
    case "mutual-tls":
      return tlsMode === "istio";
    default:
      return true;
  }
}

/** One group for each locality, by name; those of which none is known are one, too. */
export function translateEndpoints({
  clusterName,
  clusterId,
  endpoints,
  near,
}: EndpointsSection): ClusterLoadAssignment {
  const groups = [...Map.groupBy(endpoints, ({ locality = "" }) => locality)].sort(([a], [b]) => (a < b ? -1 : 1));
  const priorityOf = priorities(
    groups.map(([locality]) => locality),
    near,
  );
  // The weights of a group, and of all groups, may not add up to more than the field holds.
  const most = Math.floor(maxWeightSum / Math.max(1, endpoints.length));
  return create(ClusterLoadAssignmentSchema, {
    clusterName,
    endpoints: groups.map(([locality, own]) => {
      const lbEndpoints = own.map((endpoint) => lbEndpoint(endpoint, clusterId, most));
      return {
        locality: localityOf(locality),
        priority: priorityOf(locality),
        loadBalancingWeight: lbEndpoints.reduce((sum, { loadBalancingWeight = 1 }) => sum + loadBalancingWeight, 0),
        lbEndpoints,
      };
    }),
  });
}

/** Those that there are, from 0 without a gap: Envoy takes no other (Istio: applyLocalityFailover). */
function priorities(localities: readonly string[], near: string | undefined): (locality: string) => number {
  if (near === undefined) return () => 0;
  const distances = [...new Set(localities.map((each) => distance(near, each)))].toSorted((a, b) => a - b);
  return (locality) => distances.indexOf(distance(near, locality));
}

/** 0 in the same sub-zone, 1 in the same zone, 2 in the same region, 3 elsewhere, and where nobody knows. */
function distance(one: string, other: string): number {
  const [a, b] = [localityOf(one), localityOf(other)];
  if (a.region !== b.region) return 3;
  if (a.zone !== b.zone) return 2;
  return a.subZone === b.subZone ? 0 : 1;
}

/** `region/zone/subzone` */
function localityOf(text: string): { readonly region?: string; readonly zone?: string; readonly subZone?: string } {
  const [region = "", zone = "", subZone = ""] = text.split("/");
  return { region, zone, subZone };
}

function lbEndpoint(endpoint: MeshEndpoint, clusterId: string, maxWeight: number): LbEndpoint {
  return create(LbEndpointSchema, {
    hostIdentifier: { case: "endpoint", value: { address: socketAddress(endpoint.address, endpoint.port) } },
    healthStatus: HealthStatus.HEALTHY,
    loadBalancingWeight: Math.min(endpoint.weight ?? 1, maxWeight),
    metadata: endpointMetadata(endpoint, clusterId),
  });
}

/**
 * What the metrics of callers say of the workload, and by which socket they reach it (Envoy: transport_socket_matches).
 */
function endpointMetadata(endpoint: MeshEndpoint, clusterId: string): Metadata {
  const { labels, tlsMode } = endpoint;
  const { filterMetadata } = istioMetadata({
    workload: workloadText(endpoint, clusterId),
    labels: metricLabels(labels),
  });
  return create(MetadataSchema, {
    filterMetadata: {
      ...filterMetadata,
      ...(tlsMode === undefined ? {} : { "envoy.transport_socket_match": { [tlsModeKey]: tlsMode } }),
    },
  });
}

/** `workload;namespace;canonical service;canonical revision;cluster` (Istio: EndpointMetadata, "workload"). */
function workloadText({ workload, namespace, labels }: MeshEndpoint, clusterId: string): string {
  const service = labels["service.istio.io/canonical-name"] ?? labels["app.kubernetes.io/name"] ?? labels["app"];
  const revision =
    labels["service.istio.io/canonical-revision"] ?? labels["app.kubernetes.io/version"] ?? labels["version"];
  return [workload, namespace, service ?? workload, revision ?? "latest", clusterId].join(";");
}

/** The labels that appear in metrics by themselves; the others stay out, since an endpoint is sent to every caller. */
function metricLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(["app", "version"].flatMap((name) => (name in labels ? [[name, labels[name]!]] : [])));
}
