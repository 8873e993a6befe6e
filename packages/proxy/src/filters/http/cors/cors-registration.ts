// CORS in the table of filters: `envoy.filters.http.cors`, whose policies are the routes'.
import { CorsPolicySchema, CorsSchema } from "@tulle/xds/envoy/extensions/filters/http/cors/v3/cors_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import { eachOf } from "../../../stats/stat-description.ts";
import type { FilterRegistration } from "../filter-registration.ts";
import { CorsFilter } from "./cors-filter.ts";
import { compileCorsPolicy, type CorsPolicy, corsPolicyMessage } from "./cors-policy.ts";

const corsMessage = checkedMessage(CorsSchema, { [CorsSchema.typeName]: "" });

export const corsRegistration: FilterRegistration = {
  types: [CorsSchema.typeName],
  isTerminal: false,
  compile(config, { name, scope, statPrefix, place, problems }) {
    if (decodeTypedConfig(corsMessage, config, place, problems) === undefined) return undefined;
    const stats = eachOf({ originValid: "origin_valid", originInvalid: "origin_invalid" }, (stat) =>
      scope.metrics.counter({
        name: `envoy_http_cors_${stat}`,
        labels: { envoy_http_conn_manager_prefix: statPrefix },
        statName: `http.${statPrefix.replaceAll(":", "_")}.cors.${stat}`,
      }),
    );
    return new CorsFilter(name, stats);
  },
  routeTypes: [CorsPolicySchema.typeName],
  compileRoute(config, place, problems, above) {
    const message = decodeTypedConfig(corsPolicyMessage, config, place, problems);
    return message && compileCorsPolicy(message, above as CorsPolicy | undefined, place, problems);
  },
};
