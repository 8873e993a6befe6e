// The router's row in the table of filters (extensions.filters.http.router.v3.Router).
import { RouterSchema } from "@tulle/xds/envoy/extensions/filters/http/router/v3/router_pb";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import { counterGroup } from "../../../stats/stat-description.ts";
import type { FilterRegistration } from "../filter-registration.ts";
import { createRouterFilter } from "./router-filter.ts";

export const routerRegistration: FilterRegistration = {
  types: [RouterSchema.typeName],
  isTerminal: true,
  compile(config, build) {
    const router = decodeTypedConfig(RouterSchema, config, build.place, build.problems);
    if (router === undefined) return undefined;
    const names = { root: "http", name: build.statPrefix, label: "envoy_http_conn_manager_prefix" };
    return createRouterFilter({
      suppressEnvoyHeaders: router.suppressEnvoyHeaders,
      respectExpectedRequestTimeout: router.respectExpectedRqTimeout,
      stats: counterGroup(build.scope.metrics, names, { noRoute: "no_route", noCluster: "no_cluster" }),
    });
  },
};
