// The connection manager's row in the table of network filters.
import { HttpConnectionManagerSchema } from "@tulle/xds/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb";
import { HttpConnectionManager } from "./http-connection-manager.ts";
import { compileHttpConnectionManager } from "./compile-http-connection-manager.ts";
import { decodeTypedConfig } from "../fields/typed-config.ts";
import type { NetworkFilterRegistration } from "../filters/network/network-filter-registration.ts";
import { httpConnectionManagerMessage } from "./http-connection-manager-fields.ts";

export const httpConnectionManagerRegistration: NetworkFilterRegistration = {
  types: [HttpConnectionManagerSchema.typeName],
  isTerminal: true,
  compile(config, { listener, place }) {
    const manager = decodeTypedConfig(httpConnectionManagerMessage, config, place, listener.problems);
    const compiled = manager && compileHttpConnectionManager(manager, listener, place);
    return compiled && new HttpConnectionManager(compiled);
  },
};
