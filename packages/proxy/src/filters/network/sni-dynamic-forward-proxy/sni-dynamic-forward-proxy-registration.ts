// The server name of a connection is the host that it goes to
// (extensions.filters.network.sni_dynamic_forward_proxy.v3.FilterConfig). In Envoy this filter looks the name up before
// the TCP proxy runs; here the cluster does it when the TCP proxy asks for a host, and only the port is left to say.
import { FilterConfigSchema } from "@tulle/xds/envoy/extensions/filters/network/sni_dynamic_forward_proxy/v3/sni_dynamic_forward_proxy_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import { sharedFields } from "../../../fields/shared-fields.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import { dynamicPortKey } from "../dynamic-port.ts";
import type { NetworkFilterRegistration } from "../network-filter-registration.ts";

const filterMessage = checkedMessage(
  FilterConfigSchema,
  {
    [FilterConfigSchema.typeName]: {
      used: "dns_cache_config port_value",
      harmless: { save_upstream_address: "saved for other filters, of which none here reads it" },
    },
  },
  sharedFields,
);

const defaultPort = 443;

export const sniDynamicForwardProxyRegistration: NetworkFilterRegistration = {
  types: [FilterConfigSchema.typeName],
  isTerminal: false,
  compile(config, { name, listener, place }) {
    const message = decodeTypedConfig(filterMessage, config, place, listener.problems);
    if (message === undefined) return undefined;
    const { portSpecifier } = message;
    const port = portSpecifier.case === "portValue" ? portSpecifier.value : defaultPort;
    if (port < 1 || port > 65_535)
      listener.problems.error(place.field("port_value"), "a port from 1 to 65535 is required");
    return {
      name,
      onNewConnection(connection) {
        // Without a server name there is no host.
        if (connection.serverName !== "") connection.filterState.set(dynamicPortKey, port);
        return "continue";
      },
    };
  },
};
