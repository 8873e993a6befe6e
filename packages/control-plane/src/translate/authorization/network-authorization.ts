// AuthorizationPolicies at ports without requests → envoy.filters.network.rbac, one filter an action.
import { create } from "@bufbuild/protobuf";
import { type Filter, FilterSchema } from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { RBACSchema } from "@tulle/xds/envoy/extensions/filters/network/rbac/v3/rbac_pb";
import type { WorkloadSecurity } from "../../scope/proxy-view.ts";
import { pack } from "../messages.ts";
import { actionRules, authorizationActions, networkStatPrefix } from "./authorization-filter.ts";
import { connectionRule } from "./connection-rule.ts";
import { customNetworkFilters } from "./custom-authorization.ts";

export function networkAuthorizationFilters(security: WorkloadSecurity | undefined): Filter[] {
  const fixed = authorizationActions.flatMap((action) => {
    const rules = actionRules(security?.policies ?? [], action, (rule) => connectionRule(rule, action));
    if (rules === undefined) return [];
    const value = pack(RBACSchema, { statPrefix: networkStatPrefix, ...rules });
    return [create(FilterSchema, { name: "envoy.filters.network.rbac", configType: { case: "typedConfig", value } })];
  });
  return [...customNetworkFilters(security), ...fixed];
}
