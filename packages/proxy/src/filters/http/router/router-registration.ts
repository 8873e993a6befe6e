// The router's row in the table of filters (extensions.filters.http.router.v3.Router).
import { RouterSchema } from "@tulle/xds/envoy/extensions/filters/http/router/v3/router_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import { counterGroup } from "../../../stats/stat-description.ts";
import type { FilterRegistration } from "../filter-registration.ts";
import { createRouterFilter } from "./router-filter.ts";

const routerMessage = checkedMessage(RouterSchema, {
  [RouterSchema.typeName]: {
    used: "suppress_envoy_headers respect_expected_rq_timeout",
    warned: { start_child_span: "spawn_upstream_span of the connection manager has taken its place" },
    harmless: {
      dynamic_stats: "statistics only",
      suppress_grpc_request_failure_code_stats: "statistics only",
      reject_connect_request_early_data: "data after a CONNECT head waits for the answer",
    },
  },
});

export const routerRegistration: FilterRegistration = {
  types: [RouterSchema.typeName],
  isTerminal: true,
  compile(config, build) {
    const router = decodeTypedConfig(routerMessage, config, build.place, build.problems);
    if (router === undefined) return undefined;
    const names = { root: "http", name: build.statPrefix, label: "envoy_http_conn_manager_prefix" };
    return createRouterFilter({
      suppressEnvoyHeaders: router.suppressEnvoyHeaders,
      respectExpectedRequestTimeout: router.respectExpectedRqTimeout,
      stats: counterGroup(build.scope.metrics, names, {
        requests: "rq_total",
        directResponses: "rq_direct_response",
        noRoute: "no_route",
        noCluster: "no_cluster",
        cutOff: "rq_reset_after_downstream_response_started",
      }),
    });
  },
};
