// AuthorizationPolicies at ports without requests → envoy.filters.network.rbac, one filter an action.
import type { Filter } from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { RBACSchema } from "@tulle/xds/envoy/extensions/filters/network/rbac/v3/rbac_pb";
import type { WorkloadSecurity } from "../../scope/proxy-view.ts";
import { networkFilter, pack } from "../messages.ts";
import { actionRules, authorizationActions, networkStatPrefix } from "./authorization-filter.ts";
import { connectionRule } from "./connection-rule.ts";
import { customNetworkFilters } from "./custom-authorization.ts";

export function networkAuthorizationFilters(security: WorkloadSecurity | undefined): Filter[] {
  const fixed = authorizationActions.flatMap((action) => {
    const rules = actionRules(security?.policies ?? [], action, (rule) => connectionRule(rule, action));
    if (rules === undefined) return [];
    const settings = pack(RBACSchema, { statPrefix: networkStatPrefix, ...rules });
    return [networkFilter("envoy.filters.network.rbac", settings)];
  });
  return [...customNetworkFilters(security), ...fixed];
}
