// The table of xDS resource types: everything that the state machines, the relay and the status pages need to know
// about a type. It holds no message schemas (resource-schemas.ts does), so that a process that only relays loads none.
import type { Cluster } from "./generated/envoy/config/cluster/v3/cluster_pb.ts";
import type { TypedExtensionConfig } from "./generated/envoy/config/core/v3/extension_pb.ts";
import type { ClusterLoadAssignment } from "./generated/envoy/config/endpoint/v3/endpoint_pb.ts";
import type { Listener } from "./generated/envoy/config/listener/v3/listener_pb.ts";
import type { RouteConfiguration } from "./generated/envoy/config/route/v3/route_pb.ts";
import type { Secret } from "./generated/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import type { NameTable } from "./generated/istio/networking/nds/v1/nds_pb.ts";

/** The message behind each type. */
export interface ResourceMessages {
  readonly CDS: Cluster;
  readonly EDS: ClusterLoadAssignment;
  readonly LDS: Listener;
  readonly RDS: RouteConfiguration;
  readonly ECDS: TypedExtensionConfig;
  readonly SDS: Secret;
  readonly NDS: NameTable;
}

/** The short names that Envoy's documentation and `proxy-status` use. */
export type ResourceTypeName = keyof ResourceMessages;

export interface ResourceType {
  readonly shortName: ResourceTypeName;
  /** `type.googleapis.com/` and the message's full name, as it stands in `type_url` and in every resource's Any. */
  readonly typeUrl: string;
  /**
   * State of the world: a response holds all resources of the type, so that one left out is deleted. The other types
   * are asked for by name, and a response replaces only the names that it holds (xDS protocol, "Deleting resources").
   */
  readonly fullState: boolean;
  /**
   * One resource a response, unless there are very many to send at once. Envoy stops at the first bad RDS or EDS
   * resource of a response, and its EDS rejection names none: alone in its response, a resource can neither hold up its
   * neighbours nor hide behind them.
   */
  readonly oneResourcePerResponse: boolean;
  /** Whether an empty list in the first request means "everything" (xDS protocol, "How the client specifies…"). */
  readonly wildcard: boolean;
  /** Of a type whose messages have no name: there is one of them. */
  readonly onlyName?: string;
}

const prefix = "type.googleapis.com/";

/** Make before break: the order of the rows is the order in which a change is sent. */
export const resourceTypes: readonly ResourceType[] = [
  {
    shortName: "CDS",
    typeUrl: `${prefix}envoy.config.cluster.v3.Cluster`,
    fullState: true,
    oneResourcePerResponse: false,
    wildcard: true,
  },
  {
    shortName: "EDS",
    typeUrl: `${prefix}envoy.config.endpoint.v3.ClusterLoadAssignment`,
    fullState: false,
    oneResourcePerResponse: true,
    wildcard: false,
  },
  {
    shortName: "SDS",
    typeUrl: `${prefix}envoy.extensions.transport_sockets.tls.v3.Secret`,
    fullState: false,
    oneResourcePerResponse: true,
    wildcard: false,
  },
  {
    shortName: "LDS",
    typeUrl: `${prefix}envoy.config.listener.v3.Listener`,
    fullState: true,
    oneResourcePerResponse: false,
    wildcard: true,
  },
  {
    shortName: "ECDS",
    typeUrl: `${prefix}envoy.config.core.v3.TypedExtensionConfig`,
    fullState: false,
    oneResourcePerResponse: true,
    wildcard: false,
  },
  {
    shortName: "RDS",
    typeUrl: `${prefix}envoy.config.route.v3.RouteConfiguration`,
    fullState: false,
    oneResourcePerResponse: true,
    wildcard: false,
  },
  // Names for the DNS server beside a workload (Istio). Agents ask for it; no proxy does.
  {
    shortName: "NDS",
    typeUrl: `${prefix}istio.networking.nds.v1.NameTable`,
    fullState: true,
    oneResourcePerResponse: false,
    wildcard: true,
    onlyName: "names",
  },
];

const byName = new Map(resourceTypes.map((type) => [type.shortName, type]));
const byUrl = new Map(resourceTypes.map((type) => [type.typeUrl, type]));

export function resourceType(shortName: ResourceTypeName): ResourceType {
  return byName.get(shortName)!;
}

/** The type of a `type_url`, or undefined for one that this build does not speak. */
export function resourceTypeOfUrl(typeUrl: string): ResourceType | undefined {
  return byUrl.get(typeUrl);
}
