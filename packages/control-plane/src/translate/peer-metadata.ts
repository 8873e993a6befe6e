// The header that tells the metrics of the called proxy who is calling. Each proxy fills it from its own environment,
// so that the route table stays the same for all proxies of a namespace.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { HeaderValueOption_HeaderAppendAction, HeaderValueOptionSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { type Route, type VirtualHost, VirtualHostSchema } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { MeshService } from "../snapshot/mesh-snapshot.ts";

export const peerMetadataHeader = "x-envoy-peer-metadata";

/** Set by the agent for the proxy that it starts. */
export const peerMetadataVariable = "TULLE_PEER_METADATA";

/** Hosts of ServiceEntries that are outside of the mesh: they are told nothing of who calls. */
export function outsideHosts(services: readonly MeshService[]): ReadonlySet<string> {
  return new Set(services.filter(({ entry }) => entry?.isExternal === true).map(({ hostname }) => hostname));
}

/** A cluster, and where the headers of requests to it are changed. */
interface Way {
  readonly name: string;
  readonly headers: Pick<Route, "requestHeadersToAdd" | "requestHeadersToRemove">;
}

/**
 * A virtual host whose servers are told who calls, but for those outside of the mesh. What a virtual host does to
 * headers comes after what its routes do, so that one that leads to both leaves it to them.
 */
export function virtualHostWithPeers(
  init: MessageInitShape<typeof VirtualHostSchema>,
  outside: ReadonlySet<string>,
): VirtualHost {
  const virtualHost = create(VirtualHostSchema, init);
  const ways = virtualHost.routes.flatMap((route): readonly Way[] => {
    const specifier = route.action.case === "route" ? route.action.value.clusterSpecifier : undefined;
    if (specifier?.case === "cluster") return [{ name: specifier.value, headers: route }];
    if (specifier?.case !== "weightedClusters") return [];
    return specifier.value.clusters.map((each) => ({ name: each.name, headers: each }));
  });
  const isOutside = (cluster: string): boolean => outside.has(cluster.split("|")[3] ?? "");
  if (!ways.some(({ name }) => isOutside(name))) {
    virtualHost.requestHeadersToAdd = [create(HeaderValueOptionSchema, sendPeerMetadata())];
    return virtualHost;
  }
  for (const { name, headers } of ways) {
    if (isOutside(name)) headers.requestHeadersToRemove = [peerMetadataHeader];
    else headers.requestHeadersToAdd = [create(HeaderValueOptionSchema, sendPeerMetadata())];
  }
  return virtualHost;
}

/** Sends this proxy's metadata, in place of anything that a client claims. */
function sendPeerMetadata(): MessageInitShape<typeof HeaderValueOptionSchema> {
  return {
    header: { key: peerMetadataHeader, value: `%ENVIRONMENT(${peerMetadataVariable})%` },
    appendAction: HeaderValueOption_HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
  };
}
