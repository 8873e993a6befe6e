// The message schema of each resource type. Apart from resource-types.ts, because loading them costs a tenth of a
// second.
import type { DescMessage } from "@bufbuild/protobuf";
import type { GenMessage } from "./hydrate.ts";
import { ClusterSchema } from "./generated/envoy/config/cluster/v3/cluster_pb.ts";
import { TypedExtensionConfigSchema } from "./generated/envoy/config/core/v3/extension_pb.ts";
import { ClusterLoadAssignmentSchema } from "./generated/envoy/config/endpoint/v3/endpoint_pb.ts";
import { ListenerSchema } from "./generated/envoy/config/listener/v3/listener_pb.ts";
import { RouteConfigurationSchema } from "./generated/envoy/config/route/v3/route_pb.ts";
import { SecretSchema } from "./generated/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import { NameTableSchema } from "./generated/istio/networking/nds/v1/nds_pb.ts";
import type { ResourceMessages, ResourceTypeName } from "./resource-types.ts";

export const resourceSchemas: { readonly [T in ResourceTypeName]: GenMessage<ResourceMessages[T]> } = {
  CDS: ClusterSchema,
  EDS: ClusterLoadAssignmentSchema,
  LDS: ListenerSchema,
  RDS: RouteConfigurationSchema,
  ECDS: TypedExtensionConfigSchema,
  SDS: SecretSchema,
  NDS: NameTableSchema,
};

/** The schema of a type that is known only at run time. */
export function resourceSchema(type: ResourceTypeName): DescMessage {
  return resourceSchemas[type];
}
