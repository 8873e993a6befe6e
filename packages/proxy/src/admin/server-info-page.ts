// `/server_info`: which program answers, its state and node (admin.v3.ServerInfo).
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { messageToJson } from "@tulle/xds/json";
import { productVersion } from "../runtime/product-version.ts";
import { type AdminPage, json } from "./admin-page.ts";

export const serverInfoPage: AdminPage = {
  path: "/server_info",
  help: "print server version/status information",
  handle: (_query, { state }) => {
    const uptime = `${Math.floor((Date.now() - state.startedAtMs) / 1000)}s`;
    const { node } = state.bootstrap;
    return json({
      // Envoy: <revision>/<version>/<status>/<build type>/<TLS library>.
      version: `tulle/${productVersion}/Clean/RELEASE/node-${process.versions.node}`,
      state: state.phase,
      uptime_current_epoch: uptime,
      uptime_all_epochs: uptime,
      hot_restart_version: "disabled",
      command_line_options: state.commandLineOptions,
      node: {
        ...(node !== undefined && (messageToJson(NodeSchema, node, { fieldNames: "snake_case" }) as object)),
        user_agent_name: "tulle",
      },
    });
  },
};
