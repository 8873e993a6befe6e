// envoy.filters.listener.original_dst: where did the client mean to go, before the kernel redirected its connection
// here. The connection then has that address in the place of its own.
import { originalDestination } from "@tulle/capture";
import { OriginalDstSchema } from "@tulle/xds/envoy/extensions/filters/listener/original_dst/v3/original_dst_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import type { ConnectionInfo } from "../../../listener/connection-info.ts";
import type { ListenerFilter, ListenerFilterRegistration } from "../listener-filter.ts";

const originalDstMessage = checkedMessage(OriginalDstSchema, { [OriginalDstSchema.typeName]: "" });

export const originalDstRegistration: ListenerFilterRegistration = {
  types: [OriginalDstSchema.typeName],
  compile(config, build) {
    const message = decodeTypedConfig(originalDstMessage, config, build.place, build.problems);
    return message && originalDstFilter(build.isTransparent, build.name);
  },
};

/** Also of a listener with `use_original_dst`, which need not name it. */
export function originalDstFilter(
  isTransparent: boolean,
  name = "envoy.filters.listener.original_dst",
): ListenerFilter {
  const onAccept = isTransparent ? restoreOwnOrDestination : restoreDestination;
  return { name, isSkipped: () => false, onAccept, inspector: undefined };
}

/** What came to a transparent socket without being redirected has its destination for its own address. */
function restoreOwnOrDestination(connection: ConnectionInfo, descriptor: number): void {
  restoreDestination(connection, descriptor);
  if (!connection.isDestinationRestored) connection.restoreDestination(connection.localIp, connection.localPort);
}

/** A client that has dialled this socket itself gets its own local address for an answer: nothing is restored. */
function restoreDestination(connection: ConnectionInfo, descriptor: number): void {
  const destination = originalDestination(descriptor, connection.localIp);
  if (destination === undefined) return;
  const { ip, port } = destination;
  if (port === connection.localPort && ip === connection.localIp) return;
  connection.restoreDestination(ip, port);
}
