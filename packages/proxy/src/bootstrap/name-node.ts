// The node's names from the command line (Envoy: --service-node, --service-cluster, --service-zone), in the place of
// the bootstrap's or where it has none.
import { create } from "@bufbuild/protobuf";
import type { Bootstrap } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import { LocalitySchema, NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";

export interface NodeNames {
  readonly serviceNode?: string;
  readonly serviceCluster?: string;
  readonly serviceZone?: string;
}

export function nameNode(bootstrap: Bootstrap, { serviceNode, serviceCluster, serviceZone }: NodeNames): void {
  if (serviceNode === undefined && serviceCluster === undefined && serviceZone === undefined) return;
  bootstrap.node ??= create(NodeSchema);
  if (serviceNode !== undefined) bootstrap.node.id = serviceNode;
  if (serviceCluster !== undefined) bootstrap.node.cluster = serviceCluster;
  if (serviceZone === undefined) return;
  bootstrap.node.locality ??= create(LocalitySchema);
  bootstrap.node.locality.zone = serviceZone;
}
