// The server name of a connection is the name of its cluster, as behind the gateways between networks
// (extensions.filters.network.sni_cluster.v3.SniCluster).
import { SniClusterSchema } from "@tulle/xds/envoy/extensions/filters/network/sni_cluster/v3/sni_cluster_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import type { NetworkFilterRegistration } from "../network-filter-registration.ts";
import { perConnectionClusterKey } from "../per-connection-cluster.ts";

const sniClusterMessage = checkedMessage(SniClusterSchema, { [SniClusterSchema.typeName]: "" });

export const sniClusterRegistration: NetworkFilterRegistration = {
  types: [SniClusterSchema.typeName],
  isTerminal: false,
  compile(config, { name, listener, place }) {
    if (decodeTypedConfig(sniClusterMessage, config, place, listener.problems) === undefined) return undefined;
    return {
      name,
      onNewConnection(connection) {
        // Without a server name the TCP proxy's own cluster holds.
        if (connection.serverName !== "") connection.filterState.set(perConnectionClusterKey, connection.serverName);
        return "continue";
      },
    };
  },
};
