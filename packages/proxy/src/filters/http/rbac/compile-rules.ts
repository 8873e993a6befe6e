// A set of policies as one decision (config.rbac.v3.RBAC).
import { type Policy, type RBAC, RBAC_Action } from "@tulle/xds/envoy/config/rbac/v3/rbac_pb";
import type { Place, Problems } from "../../../fields/problems.ts";
import type { RequestHead } from "../../../http/message.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";
import { compilePermission } from "./compile-permission.ts";
import { compilePrincipal } from "./compile-principal.ts";
import { type Condition, allOf } from "./condition.ts";
import { anyOf, firstMatchOf } from "./condition-index.ts";

export type RulesAction = "allow" | "deny" | "log";

export interface Rules {
  readonly action: RulesAction;
  /** Names of all policies, in the order in which they are tried. */
  readonly policyNames: readonly string[];
  /** Name of the first policy that matches; undefined = none does. */
  matchedPolicy(request: RequestHead, info: StreamInfo): string | undefined;
}

const actions: Readonly<Record<number, RulesAction>> = {
  [RBAC_Action.ALLOW]: "allow",
  [RBAC_Action.DENY]: "deny",
  [RBAC_Action.LOG]: "log",
};

export function compileRules(rules: RBAC, place: Place, problems: Problems): Rules {
  const action = actions[rules.action];
  if (action === undefined) problems.error(place.field("action"), "value must be one of the defined enum values");
  // Envoy tries policies in the order of their names.
  const policyNames = Object.keys(rules.policies).sort((a, b) => (a < b ? -1 : 1));
  const firstMatch = firstMatchOf(
    policyNames.map((name) => compilePolicy(rules.policies[name]!, place.key("policies", name), problems)),
  );
  return {
    action: action ?? "allow",
    policyNames,
    matchedPolicy: (request, info) => policyNames[firstMatch(request, info)],
  };
}

function compilePolicy(policy: Policy, place: Place, problems: Problems): Condition {
  const { permissions, principals } = policy;
  if (permissions.length === 0) problems.error(place.field("permissions"), "value must contain at least 1 item(s)");
  if (principals.length === 0) problems.error(place.field("principals"), "value must contain at least 1 item(s)");
  return allOf([
    anyOf(permissions.map((one, index) => compilePermission(one, place.field("permissions", index), problems))),
    anyOf(principals.map((one, index) => compilePrincipal(one, place.field("principals", index), problems))),
  ]);
}
