// AuthorizationPolicies → envoy.filters.http.rbac, one filter an action. Their names are those of newer Istios: a proxy
// rightly complains of two filters with one name.
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

const matchesNothing: Policy = {
  permissions: [{ rule: { case: "notRule", value: { rule: { case: "any", value: true } } } }],
  principals: [{ identifier: { case: "notId", value: { identifier: { case: "any", value: true } } } }],
};

/** CUSTOM stands before them and has filters of its own. */
export type FixedAction = Exclude<MeshAuthorizationPolicy["action"], "CUSTOM">;

/**
 * In the order in which they decide: DENY, then ALLOW. AUDIT stands before them, since what it marks is logged whatever
 * they say (Istio: authz/builder).
 */
export const authorizationActions: readonly FixedAction[] = ["AUDIT", "DENY", "ALLOW"];

interface ActionRow {
  readonly rbacAction: RBAC_Action;
  /** Of the statistics of policies on trial. */
  readonly dryRunPrefix: string;
}

const actions: Readonly<Record<FixedAction, ActionRow>> = {
  AUDIT: { rbacAction: RBAC_Action.LOG, dryRunPrefix: "" },
  DENY: { rbacAction: RBAC_Action.DENY, dryRunPrefix: "istio_dry_run_deny_" },
  ALLOW: { rbacAction: RBAC_Action.ALLOW, dryRunPrefix: "istio_dry_run_allow_" },
};

/** Istio's, of the counters of network filters (authzmodel.RBACTCPFilterStatPrefix). */
export const networkStatPrefix = "tcp.";

/** The filter of `action`; undefined when no policy has that action. */
export function authorizationFilter(
  policies: readonly MeshAuthorizationPolicy[],
  action: FixedAction,
): Any | undefined {
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
  action: FixedAction,
  read: ReadRule = (rule) => rule,
): ActionRules | undefined {
  const own = policies.filter((policy) => policy.action === action);
  if (own.length === 0) return undefined;
  const { rbacAction, dryRunPrefix } = actions[action];
  const enforced = own.filter(({ dryRun }) => !dryRun);
  const onTrial = own.filter(({ dryRun }) => dryRun);
  return {
    ...(enforced.length === 0 ? {} : { rules: rulesOf(enforced, { action: rbacAction }, read) }),
    ...(onTrial.length === 0
      ? {}
      : { shadowRules: rulesOf(onTrial, { action: rbacAction }, read), shadowRulesStatPrefix: dryRunPrefix }),
  };
}

export interface RulesNaming {
  readonly action: RBAC_Action;
  /** Around the names of policies. */
  readonly namePrefix?: string;
  readonly nameSuffix?: string;
}

/** An ALLOW policy without rules allows nothing, and still makes that everything else has to be allowed. */
export function rulesOf(
  policies: readonly MeshAuthorizationPolicy[],
  { action, namePrefix = "", nameSuffix = "" }: RulesNaming,
  read: ReadRule = (rule) => rule,
): Rules {
  const entries = policies.flatMap(({ namespace, name, rules }): readonly [string, Policy][] => {
    const prefix = `${namePrefix}ns[${namespace}]-policy[${name}]`;
    if (rules.length === 0) return [[`${prefix}-rule[0]${nameSuffix}`, matchesNothing]];
    return rules.flatMap((whole, index): readonly [string, Policy][] => {
      const rule = read(whole);
      if (rule === undefined) return [];
      const policy = { permissions: permissions(rule), principals: principals(rule, namespace) };
      return [[`${prefix}-rule[${index}]${nameSuffix}`, policy]];
    });
  });
  return { action, policies: Object.fromEntries(entries) };
}
