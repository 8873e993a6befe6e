// Access control of connections in the table of network filters.
import type { Permission, Principal, RBAC as RulesMessage } from "@tulle/xds/envoy/config/rbac/v3/rbac_pb";
import { RBACSchema } from "@tulle/xds/envoy/extensions/filters/network/rbac/v3/rbac_pb";
import type { Place, Problems } from "../../../fields/problems.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import { type Rules, compileRules } from "../../http/rbac/compile-rules.ts";
import type { NetworkFilterRegistration } from "../network-filter-registration.ts";
import { DecisionNotes } from "../../http/rbac/decision.ts";
import { NetworkRbacFilter } from "./network-rbac-filter.ts";
import { makeNetworkRbacStats } from "./network-rbac-stats.ts";
import { networkRbacMessage } from "./network-rbac-fields.ts";

export const networkRbacRegistration: NetworkFilterRegistration = {
  types: [RBACSchema.typeName],
  isTerminal: false,
  compile(config, { name, listener, place }) {
    const { problems, scope } = listener;
    const message = decodeTypedConfig(networkRbacMessage, config, place, problems);
    if (message === undefined) return undefined;
    const { statPrefix, shadowRulesStatPrefix } = message;
    if (statPrefix === "") problems.error(place.field("stat_prefix"), "value length must be at least 1 characters");
    return new NetworkRbacFilter({
      name,
      rules: compileConnectionRules(message.rules, place.field("rules"), problems),
      shadowRules: compileConnectionRules(message.shadowRules, place.field("shadow_rules"), problems),
      shadowNotes: new DecisionNotes("envoy.filters.network.rbac", `${shadowRulesStatPrefix}shadow_`),
      stats: makeNetworkRbacStats(scope.metrics, statPrefix, shadowRulesStatPrefix),
      log: scope.logging.logger("rbac"),
    });
  },
};

function compileConnectionRules(
  message: RulesMessage | undefined,
  place: Place,
  problems: Problems,
): Rules | undefined {
  if (message === undefined) return undefined;
  const rules = compileRules(message, place, problems);
  for (const [name, { permissions, principals }] of Object.entries(message.policies)) {
    const hasHeader = permissions.some(permissionAsksForHeader) || principals.some(principalAsksForHeader);
    if (!hasHeader) continue;
    problems.error(place.key("policies", name), "Found header rule, not supported by RBAC network filter");
  }
  return rules;
}

function permissionAsksForHeader({ rule }: Permission): boolean {
  switch (rule.case) {
    case "header":
      return true;
    case "andRules":
    case "orRules":
      return rule.value.rules.some(permissionAsksForHeader);
    case "notRule":
      return permissionAsksForHeader(rule.value);
    default:
      return false;
  }
}

function principalAsksForHeader({ identifier }: Principal): boolean {
  switch (identifier.case) {
    case "header":
      return true;
    case "andIds":
    case "orIds":
      return identifier.value.ids.some(principalAsksForHeader);
    case "notId":
      return principalAsksForHeader(identifier.value);
    default:
      return false;
  }
}
