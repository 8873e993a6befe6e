// Token checks in the table of filters: `envoy.filters.http.jwt_authn` and what a route may say instead of its rules.
import type { Counter, MetricRegistry } from "@tulle/telemetry";
import {
  type JwtAuthentication,
  JwtAuthenticationSchema,
  PerRouteConfigSchema,
  type RequirementRule,
} from "@tulle/xds/envoy/extensions/filters/http/jwt_authn/v3/config_pb";
import { compileRouteMatch } from "../../../fields/compile-route-match.ts";
import type { CompileScope } from "../../../fields/compile-scope.ts";
import type { Place, Problems } from "../../../fields/problems.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import type { FilterRegistration } from "../filter-registration.ts";
import { compileProvider } from "./compile-provider.ts";
import { type Providers, type Requirement, compileRequirement } from "./compile-requirement.ts";
import { JwtAuthnFilter, type JwtAuthnStats, type JwtRule, type RouteRequirement } from "./jwt-authn-filter.ts";
import { TokenCache } from "./token-cache.ts";
import { jwtAuthenticationMessage, jwtPerRouteMessage } from "./jwt-authn-fields.ts";

/** One a proxy: a listener that is replaced need not verify its clients' tokens anew. */
const caches = new WeakMap<CompileScope, TokenCache>();

function cacheOf(scope: CompileScope): TokenCache {
  let cache = caches.get(scope);
  if (cache === undefined) caches.set(scope, (cache = new TokenCache()));
  return cache;
}

export const jwtAuthnRegistration: FilterRegistration = {
  types: [JwtAuthenticationSchema.typeName],
  isTerminal: false,
  compile(config, { name, scope, statPrefix, place, problems }) {
    const message = decodeTypedConfig(jwtAuthenticationMessage, config, place, problems);
    if (message === undefined) return undefined;
    const providers = compileProviders(message, place, problems);
    const namedRequirements = compileNamedRequirements(message, providers, place, problems);
    return new JwtAuthnFilter({
      name,
      rules: message.rules.map((rule, index) =>
        compileRule(rule, providers, namedRequirements, place.field("rules", index), problems),
      ),
      namedRequirements,
      bypassesCorsPreflight: message.bypassCorsPreflight,
      hidesFailure: message.stripFailureResponse,
      cache: cacheOf(scope),
      stats: makeStats(scope.metrics, statPrefix, message.statPrefix),
      log: scope.logging.logger("jwt"),
    });
  },
  routeTypes: [PerRouteConfigSchema.typeName],
  compileRoute(config, place, problems): RouteRequirement | undefined {
    const message = decodeTypedConfig(jwtPerRouteMessage, config, place, problems);
    const specifier = message?.requirementSpecifier;
    switch (specifier?.case) {
      case "disabled":
        if (!specifier.value) problems.error(place.field("disabled"), "value must equal true");
        return { type: "disabled" };
      case "requirementName":
        if (specifier.value === "") {
          problems.error(place.field("requirement_name"), "value length must be at least 1 characters");
        }
        return { type: "named", name: specifier.value };
      default:
        if (message !== undefined) problems.error(place.field("requirement_specifier"), "is required");
        return undefined;
    }
  },
};

function compileProviders(message: JwtAuthentication, place: Place, problems: Problems): Providers {
  return new Map(
    Object.entries(message.providers).map(([name, provider]) => [
      name,
      compileProvider(name, provider, place.key("providers", name), problems),
    ]),
  );
}

function compileNamedRequirements(
  message: JwtAuthentication,
  providers: Providers,
  place: Place,
  problems: Problems,
): ReadonlyMap<string, Requirement> {
  return new Map(
    Object.entries(message.requirementMap).map(([name, requirement]) => [
      name,
      compileRequirement(requirement, providers, place.key("requirement_map", name), problems),
    ]),
  );
}

function compileRule(
  rule: RequirementRule,
  providers: Providers,
  named: ReadonlyMap<string, Requirement>,
  place: Place,
  problems: Problems,
): JwtRule {
  if (rule.match === undefined) problems.error(place.field("match"), "is required");
  const matches = rule.match
    ? compileRouteMatch(rule.match, place.field("match"), problems).matches
    : (): boolean => false;
  const type = rule.requirementType;
  if (type.case === "requires") {
    return { matches, requirement: compileRequirement(type.value, providers, place.field("requires"), problems) };
  }
  if (type.case === undefined) return { matches, requirement: undefined };
  const requirement = named.get(type.value);
  if (requirement === undefined) {
    const names = [...named.keys()].sort().join(",");
    const words = `Wrong requirement_name: ${type.value}. It should be one of [${names}]`;
    problems.error(place.field("requirement_name"), words);
  }
  return { matches, requirement };
}

/** `http.<connection manager>.jwt_authn.<prefix>allowed`. */
function makeStats(metrics: MetricRegistry, managerPrefix: string, ownPrefix: string): JwtAuthnStats {
  const prefix = ownPrefix === "" ? "" : `${ownPrefix}.`;
  const counter = (stat: string): Counter =>
    metrics.counter({
      name: `envoy_http_jwt_authn_${(prefix + stat).replaceAll(/[^A-Za-z0-9_]/g, "_")}`,
      labels: { envoy_http_conn_manager_prefix: managerPrefix },
      statName: `http.${managerPrefix.replaceAll(":", "_")}.jwt_authn.${prefix}${stat}`,
    });
  return {
    allowed: counter("allowed"),
    denied: counter("denied"),
    corsPreflightBypassed: counter("cors_preflight_bypassed"),
    cacheHits: counter("jwt_cache_hit"),
    cacheMisses: counter("jwt_cache_miss"),
  };
}
