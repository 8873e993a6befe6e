// Access control in the table of filters: `envoy.filters.http.rbac` and what a route may say instead of it.
import { type RBAC, RBACPerRouteSchema, RBACSchema } from "@tulle/xds/envoy/extensions/filters/http/rbac/v3/rbac_pb";
import type { Place, Problems } from "../../../fields/problems.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import type { FilterRegistration } from "../filter-registration.ts";
import { compileRules } from "./compile-rules.ts";
import { DecisionNotes } from "./decision.ts";
import { RbacFilter, type RbacPolicies } from "./rbac-filter.ts";
import { makeRbacStats } from "./rbac-stats.ts";
import { rbacMessage, rbacPerRouteMessage } from "./rbac-fields.ts";

export const rbacRegistration: FilterRegistration = {
  types: [RBACSchema.typeName],
  isTerminal: false,
  compile(config, { name, scope, statPrefix, place, problems }) {
    const message = decodeTypedConfig(rbacMessage, config, place, problems);
    if (message === undefined) return undefined;
    const { rulesStatPrefix, shadowRulesStatPrefix } = message;
    return new RbacFilter({
      name,
      policies: compilePolicies(message, place, problems),
      stats: makeRbacStats({ metrics: scope.metrics, statPrefix, rulesStatPrefix, shadowRulesStatPrefix }),
      log: scope.logging.logger("rbac"),
    });
  },
  routeTypes: [RBACPerRouteSchema.typeName],
  compileRoute(config, place, problems) {
    const message = decodeTypedConfig(rbacPerRouteMessage, config, place, problems);
    if (message === undefined) return undefined;
    return message.rbac === undefined ? noPolicies : compilePolicies(message.rbac, place.field("rbac"), problems);
  },
};

/** Envoy's namespace of dynamic metadata for what rules said. */
const namespace = "envoy.filters.http.rbac";

const noPolicies: RbacPolicies = {
  rules: undefined,
  shadowRules: undefined,
  notes: new DecisionNotes(namespace, "enforced_"),
  shadowNotes: new DecisionNotes(namespace, "shadow_"),
  countsPolicies: false,
};

function compilePolicies(message: RBAC, place: Place, problems: Problems): RbacPolicies {
  const { rules, shadowRules } = message;
  return {
    rules: rules && compileRules(rules, place.field("rules"), problems),
    shadowRules: shadowRules && compileRules(shadowRules, place.field("shadow_rules"), problems),
    notes: new DecisionNotes(namespace, `${message.rulesStatPrefix}enforced_`),
    shadowNotes: new DecisionNotes(namespace, `${message.shadowRulesStatPrefix}shadow_`),
    countsPolicies: message.trackPerRuleStats,
  };
}
