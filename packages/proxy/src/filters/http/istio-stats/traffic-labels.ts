// The labels that Istio's metrics of requests and of connections have in common: between whom, for which service, how
// safely.
import type { Labels } from "@tulle/telemetry";
import type { Cluster, Host } from "../../../cluster/cluster.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";
import type { ConnectionSecurity } from "./connection-security.ts";
import {
  clusterService,
  endpointLabels,
  type ServiceLabels,
  unknownWorkload,
  type WorkloadLabels,
} from "./workload-labels.ts";

/** A waypoint is what Istio calls SERVER_GATEWAY: it stands before the workloads of others. */
export type Reporter = "source" | "destination" | "waypoint";

export interface Traffic {
  readonly reporter: Reporter;
  readonly source: WorkloadLabels;
  readonly destination: WorkloadLabels;
  readonly service: ServiceLabels;
  readonly security: ConnectionSecurity;
}

/** `own` stands between what is common: what tells one request or connection from another. */
export function trafficLabels({ reporter, source, destination, service, security }: Traffic, own: Labels): Labels {
  return {
    reporter,
    ...prefixed("source", source),
    ...prefixed("destination", destination),
    source_principal: security.sourcePrincipal,
    destination_principal: security.destinationPrincipal,
    destination_service: service.service,
    destination_service_name: service.name,
    destination_service_namespace: service.namespace,
    ...own,
    connection_security_policy: security.policy,
  };
}

function prefixed(side: "source" | "destination", labels: WorkloadLabels): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [`${side}_${name}`, value as string]));
}

const services = new WeakMap<Cluster, { readonly service: ServiceLabels | undefined }>();

export function clusterServiceOf(cluster: Cluster): ServiceLabels | undefined {
  let kept = services.get(cluster);
  if (kept === undefined) {
    kept = { service: clusterService(cluster.metadata) };
    services.set(cluster, kept);
  }
  return kept.service;
}

export function hostLabels(host: Host | undefined): WorkloadLabels {
  return host === undefined ? unknownWorkload : endpointLabels(host.metadata);
}

/** Of a service that nothing but the request names. */
export function authorityOf(info: StreamInfo): string {
  const authority = info.request?.authority ?? "";
  return authority === "" ? "unknown" : authority.toLowerCase();
}
