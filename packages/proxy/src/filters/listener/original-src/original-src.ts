// envoy.filters.listener.original_src: hosts are called from the client's address, as if there were no proxy. The
// kernel has to lead their answers back (a mark, a rule, a local route), and lets only CAP_NET_ADMIN do it.
import { OriginalSrcSchema } from "@tulle/xds/envoy/extensions/filters/listener/original_src/v3/original_src_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import type { ListenerFilterRegistration } from "../listener-filter.ts";

const originalSrcMessage = checkedMessage(OriginalSrcSchema, { [OriginalSrcSchema.typeName]: "bind_port mark" });

export const originalSrcRegistration: ListenerFilterRegistration = {
  types: [OriginalSrcSchema.typeName],
  compile(config, build) {
    const message = decodeTypedConfig(originalSrcMessage, config, build.place, build.problems);
    if (message === undefined) return undefined;
    const { bindPort, mark } = message;
    return {
      name: build.name,
      isSkipped: () => false,
      // Behind the PROXY protocol, whose client it then is.
      onAccept: (connection) => {
        const { remoteIp: ip } = connection;
        const port = bindPort ? connection.remotePort : 0;
        connection.upstreamSource = { ip, port, mark, key: `${ip} ${port} ${mark}` };
      },
      inspector: undefined,
    };
  },
};
