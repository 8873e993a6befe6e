// The header that tells the metrics of the called proxy who is calling. Each proxy fills it from its own environment,
// so that the route table stays the same for all proxies of a namespace.
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  HeaderValueOption_HeaderAppendAction,
  type HeaderValueOptionSchema,
} from "@tulle/xds/envoy/config/core/v3/base_pb";

export const peerMetadataHeader = "x-envoy-peer-metadata";

/** Set by the agent for the proxy that it starts. */
export const peerMetadataVariable = "TULLE_PEER_METADATA";

/** Sends this proxy's metadata, in place of anything that a client claims. */
export function sendPeerMetadata(): MessageInitShape<typeof HeaderValueOptionSchema> {
  return {
    header: { key: peerMetadataHeader, value: `%ENVIRONMENT(${peerMetadataVariable})%` },
    appendAction: HeaderValueOption_HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
  };
}
