// Rows of access control of connections (extensions.filters.network.rbac.v3); those of the policies are the HTTP
// filter's.
import { RBACSchema } from "@tulle/xds/envoy/extensions/filters/network/rbac/v3/rbac_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import type { FieldRows } from "../../../fields/field-row.ts";
import { matcherFields } from "../../../fields/matchers/matcher-fields.ts";
import { sharedFields } from "../../../fields/shared-fields.ts";
import { policyFields } from "../../http/rbac/rbac-fields.ts";

const networkRbacFields: FieldRows = {
  "envoy.extensions.filters.network.rbac.v3.RBAC": {
    used: "rules shadow_rules shadow_rules_stat_prefix stat_prefix",
    harmless: { enforcement_type: "what the rules ask for stays the same as long as a connection lasts" },
    warned: { delay_deny: "a connection that is denied is closed at once" },
  },
};

export const networkRbacMessage = checkedMessage(
  RBACSchema,
  networkRbacFields,
  policyFields,
  matcherFields,
  sharedFields,
);
