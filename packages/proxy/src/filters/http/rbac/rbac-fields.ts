// Rows of access control (extensions.filters.http.rbac.v3, config.rbac.v3).
import { RBACPerRouteSchema, RBACSchema } from "@tulle/xds/envoy/extensions/filters/http/rbac/v3/rbac_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import type { FieldRows } from "../../../fields/field-row.ts";
import { matcherFields } from "../../../fields/matchers/matcher-fields.ts";
import { sharedFields } from "../../../fields/shared-fields.ts";

const rbac = "envoy.config.rbac.v3";

/** Of the policies, which connections have too. */
export const policyFields: FieldRows = {
  [`${rbac}.RBAC`]: "action policies",
  [`${rbac}.Policy`]: "permissions principals",
  [`${rbac}.Permission`]: `and_rules or_rules any header url_path destination_ip destination_port
    destination_port_range metadata not_rule requested_server_name sourced_metadata`,
  [`${rbac}.Permission.Set`]: "rules",
  [`${rbac}.Principal`]: `and_ids or_ids any authenticated source_ip direct_remote_ip remote_ip header url_path metadata
    filter_state not_id sourced_metadata`,
  [`${rbac}.Principal.Set`]: "ids",
  [`${rbac}.Principal.Authenticated`]: "principal_name",
  [`${rbac}.SourcedMetadata`]: "metadata_matcher metadata_source",
  "envoy.type.matcher.v3.FilterStateMatcher": { used: "key string_match", told: "address_match" },
};

const rbacFields: FieldRows = {
  "envoy.extensions.filters.http.rbac.v3.RBAC":
    "rules rules_stat_prefix shadow_rules shadow_rules_stat_prefix track_per_rule_stats",
  "envoy.extensions.filters.http.rbac.v3.RBACPerRoute": "rbac",
};

const tables = [rbacFields, policyFields, matcherFields, sharedFields] as const;

export const rbacMessage = checkedMessage(RBACSchema, ...tables);
export const rbacPerRouteMessage = checkedMessage(RBACPerRouteSchema, ...tables);
