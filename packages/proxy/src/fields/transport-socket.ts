// Which transport sockets a listener or cluster may name (config.core.v3.TransportSocket).
import type { TransportSocket } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { RawBufferSchema } from "@tulle/xds/envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer_pb";
import { typeUrlOf } from "./typed-config.ts";

/** Plain TCP; the name counts where there is no typed configuration. */
export function isRawBuffer(socket: TransportSocket): boolean {
  const config = socket.configType;
  if (config.case === "typedConfig") return config.value.typeUrl === typeUrlOf(RawBufferSchema);
  return socket.name === "envoy.transport_sockets.raw_buffer";
}
