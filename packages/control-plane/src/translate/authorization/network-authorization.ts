// AuthorizationPolicies at ports without requests → envoy.filters.network.rbac, one filter an action.
import { create } from "@bufbuild/protobuf";
import { type Filter, FilterSchema } from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { RBACSchema } from "@tulle/xds/envoy/extensions/filters/network/rbac/v3/rbac_pb";
import type { WorkloadSecurity } from "../../scope/proxy-view.ts";
import { pack } from "../messages.ts";
import { actionRules, authorizationActions } from "./authorization-filter.ts";
import { connectionRule } from "./connection-rule.ts";

/** Istio's, of the filter's counters (authzmodel.RBACTCPFilterStatPrefix). */
const statPrefix = "tcp.";

export function networkAuthorizationFilters(security: WorkloadSecurity | undefined): Filter[] {
  return authorizationActions.flatMap((action) => {
    const rules = actionRules(security?.policies ?? [], action, (rule) => connectionRule(rule, action));
    if (rules === undefined) return [];
    const value = pack(RBACSchema, { statPrefix, ...rules });
    return [create(FilterSchema, { name: "envoy.filters.network.rbac", configType: { case: "typedConfig", value } })];
  });
}
