// AuthorizationPolicies → envoy.filters.http.rbac, one filter an action. Their names are those of newer Istios: a proxy rightly
// complains of two filters with one name.
import { type MessageInitShape } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import type { AuthorizationRule } from "@tulle/config";
import {
  type PolicySchema,
  RBAC_Action,
  type RBACSchema as RulesSchema,
} from "@tulle/xds/envoy/config/rbac/v3/rbac_pb";
import { RBACSchema } from "@tulle/xds/envoy/extensions/filters/http/rbac/v3/rbac_pb";
import type { MeshAuthorizationPolicy } from "../../snapshot/mesh-snapshot.ts";
import { pack } from "../messages.ts";
import { permissions } from "./permission.ts";
import { principals } from "./principal.ts";

type Policy = MessageInitShape<typeof PolicySchema>;
type Rules = MessageInitShape<typeof RulesSchema>;

type Action = MeshAuthorizationPolicy["action"];

/**
 * In the order in which they decide: CUSTOM, then DENY, then ALLOW. AUDIT stands before the last two, since what it marks is
 * logged whatever they say (Istio: authz/builder).
 */
export const authorizationActions: readonly Action[] = ["CUSTOM", "AUDIT", "DENY", "ALLOW"];

interface ActionRow {
  readonly rbacAction: RBAC_Action;
  /** Of the statistics of policies on trial. */
  readonly dryRunPrefix: string;
  /** Ends the names of policies. */
  readonly nameSuffix: string;
}

const actions: Readonly<Record<Action, ActionRow>> = {
  // Nobody can be asked yet: what such a policy matches is denied, as Istio does without the provider that a policy names.
  CUSTOM: {
    rbacAction: RBAC_Action.DENY,
    dryRunPrefix: "istio_ext_authz_",
    nameSuffix: "-deny-due-to-bad-CUSTOM-action",
  },
  AUDIT: { rbacAction: RBAC_Action.LOG, dryRunPrefix: "", nameSuffix: "" },
  DENY: { rbacAction: RBAC_Action.DENY, dryRunPrefix: "istio_dry_run_deny_", nameSuffix: "" },
  ALLOW: { rbacAction: RBAC_Action.ALLOW, dryRunPrefix: "istio_dry_run_allow_", nameSuffix: "" },
};

/** The filter of `action`; undefined when no policy has that action. */
export function authorizationFilter(policies: readonly MeshAuthorizationPolicy[], action: Action): Any | undefined {
  const rules = actionRules(policies, action);
  return rules && pack(RBACSchema, rules);
}

/** What of a rule is judged; undefined = the rule is left out, and its policy stays. */
type ReadRule = (rule: AuthorizationRule) => AuthorizationRule | undefined;

export interface ActionRules {
  readonly rules?: Rules;
  readonly shadowRules?: Rules;
  readonly shadowRulesStatPrefix?: string;
}

export function actionRules(
  policies: readonly MeshAuthorizationPolicy[],
  action: Action,
  read: ReadRule = (rule) => rule,
): ActionRules | undefined {
  const own = policies.filter((policy) => policy.action === action);
  if (own.length === 0) return undefined;
  const row = actions[action];
  const enforced = own.filter(({ dryRun }) => !dryRun);
  const onTrial = own.filter(({ dryRun }) => dryRun);
  return {
    ...(enforced.length === 0 ? {} : { rules: rulesOf(enforced, row, read) }),
    ...(onTrial.length === 0
      ? {}
      : { shadowRules: rulesOf(onTrial, row, read), shadowRulesStatPrefix: row.dryRunPrefix }),
  };
}

/** An ALLOW policy without rules allows nothing, and still makes that everything else has to be allowed. */
function rulesOf(
  policies: readonly MeshAuthorizationPolicy[],
  { rbacAction, nameSuffix }: ActionRow,
  read: ReadRule,
): Rules {
  const entries = policies.flatMap(({ namespace, name, rules }): readonly [string, Policy][] => {
    const prefix = `ns[${namespace}]-policy[${name}]`;
    if (rules.length === 0) return [[`${prefix}-rule[0]${nameSuffix}`, matchesNothing]];
    return rules.flatMap((whole, index): readonly [string, Policy][] => {
      const rule = read(whole);
      if (rule === undefined) return [];
      const policy = { permissions: permissions(rule), principals: principals(rule, namespace) };
      return [[`${prefix}-rule[${index}]${nameSuffix}`, policy]];
    });
  });
  return { action: rbacAction, policies: Object.fromEntries(entries) };
}

const matchesNothing: Policy = {
  permissions: [{ rule: { case: "notRule", value: { rule: { case: "any", value: true } } } }],
  principals: [{ identifier: { case: "notId", value: { identifier: { case: "any", value: true } } } }],
};
