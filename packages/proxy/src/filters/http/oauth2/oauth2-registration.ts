// Sign-in of browsers in the table of filters: `envoy.filters.http.oauth2`.
import { OAuth2Schema } from "@tulle/xds/envoy/extensions/filters/http/oauth2/v3/oauth_pb";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import type { FilterRegistration } from "../filter-registration.ts";
import { compileOAuth2Config } from "./compile-oauth2-config.ts";
import { OAuth2Filter } from "./oauth2-filter.ts";
import { makeOAuth2Stats } from "./oauth2-stats.ts";
import { oauth2Message } from "./oauth2-fields.ts";

export const oauth2Registration: FilterRegistration = {
  types: [OAuth2Schema.typeName],
  isTerminal: false,
  compile(config, build) {
    const { name, scope, statPrefix, place, problems } = build;
    const message = decodeTypedConfig(oauth2Message, config, place, problems);
    if (message === undefined) return undefined;
    // Envoy takes it and does nothing, unless a route says more; routes of this proxy cannot.
    if (message.config === undefined) return { name };
    const compiled = compileOAuth2Config(message.config, build, place.field("config"));
    if (compiled === undefined) return undefined;
    const stats = makeOAuth2Stats(scope.metrics, statPrefix, message.config.statPrefix);
    return new OAuth2Filter({ name, config: compiled, stats, log: scope.logging.logger("oauth2") });
  },
};
