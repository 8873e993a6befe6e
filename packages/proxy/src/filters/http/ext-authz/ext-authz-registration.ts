// External authorization in the table of filters: `envoy.filters.http.ext_authz` and what a route may say about it.
import {
  ExtAuthzPerRouteSchema,
  ExtAuthzSchema,
} from "@tulle/xds/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import type { FilterRegistration } from "../filter-registration.ts";
import { compileExtAuthzConfig, compileRouteConfig } from "./compile-ext-authz-config.ts";
import { ExtAuthzFilter } from "./ext-authz-filter.ts";
import { makeExtAuthzStats } from "./ext-authz-stats.ts";
import { extAuthzMessage, extAuthzPerRouteMessage } from "./ext-authz-fields.ts";

export const extAuthzRegistration: FilterRegistration = {
  types: [ExtAuthzSchema.typeName],
  isTerminal: false,
  compile(config, build) {
    const { name, scope, statPrefix, place, problems } = build;
    const message = decodeTypedConfig(extAuthzMessage, config, place, problems);
    const compiled = message && compileExtAuthzConfig(message, build);
    if (message === undefined || compiled === undefined) return undefined;
    const stats = makeExtAuthzStats(scope.metrics, statPrefix, message.statPrefix);
    return new ExtAuthzFilter({ name, config: compiled, stats, log: scope.logging.logger("ext_authz") });
  },
  routeTypes: [ExtAuthzPerRouteSchema.typeName],
  compileRoute(config, place, problems) {
    const message = decodeTypedConfig(extAuthzPerRouteMessage, config, place, problems);
    return message && compileRouteConfig(message, place, problems);
  },
};
