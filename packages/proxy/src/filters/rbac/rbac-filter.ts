// Decides by policies whether a request goes on (extensions.filters.http.rbac.v3.RBAC): rules that hold, and shadow rules
// that only say what they would have done.
import type { Logger } from "@tulle/telemetry";
import type { FilterStatus, HttpFilter, HttpStream } from "../../http/filter.ts";
import type { StreamInfo } from "../../http/stream-info.ts";
import type { Rules } from "./compile-rules.ts";
import { deniedDetails } from "./denied-details.ts";
import type { RbacStats } from "./rbac-stats.ts";

export interface RbacPolicies {
  /** Undefined = nothing is refused. */
  readonly rules: Rules | undefined;
  readonly shadowRules: Rules | undefined;
  readonly rulesStatPrefix: string;
  readonly shadowRulesStatPrefix: string;
  readonly countsPolicies: boolean;
}

export interface RbacFilterOptions {
  readonly name: string;
  readonly policies: RbacPolicies;
  readonly stats: RbacStats;
  readonly log: Logger;
}

/** Envoy's namespaces of dynamic metadata: what rules said, and whether the access log should keep a request. */
const rbacNamespace = "envoy.filters.http.rbac";
const commonNamespace = "envoy.common";

interface Decision {
  readonly isAllowed: boolean;
  readonly policy: string | undefined;
}

export class RbacFilter implements HttpFilter {
  readonly name: string;
  readonly #options: RbacFilterOptions;

  constructor(options: RbacFilterOptions) {
    this.name = options.name;
    this.#options = options;
  }

  onRequestHead(stream: HttpStream): FilterStatus {
    const { policies: ownPolicies } = this.#options;
    const ofRoute = stream.routeMatch?.route.perFilterConfig.get(this.name) as RbacPolicies | undefined;
    const policies = ofRoute ?? ownPolicies;
    if (policies.shadowRules !== undefined) this.#judgeInShadow(stream, policies.shadowRules, policies);
    if (policies.rules === undefined) return "continue";
    const decision = decide(stream, policies.rules);
    const { stats, log } = this.#options;
    (decision.isAllowed ? stats.allowed : stats.denied).increment();
    if (policies.countsPolicies && decision.policy !== undefined) {
      (decision.isAllowed ? stats.policyAllowed : stats.policyDenied)(decision.policy).increment();
    }
    if (log.debugEnabled) {
      log.debug(decision.isAllowed ? "enforced allowed" : "enforced denied", { policy: decision.policy ?? "none" });
    }
    addResult(stream.info, `${policies.rulesStatPrefix}enforced_`, decision);
    if (decision.isAllowed) return "continue";
    stream.sendLocalReply({
      status: 403,
      body: "RBAC: access denied",
      details: deniedDetails(decision.policy ?? "none"),
    });
    return "stop";
  }

  #judgeInShadow(stream: HttpStream, rules: Rules, policies: RbacPolicies): void {
    const decision = decide(stream, rules);
    const { stats, log } = this.#options;
    (decision.isAllowed ? stats.shadowAllowed : stats.shadowDenied).increment();
    if (policies.countsPolicies && decision.policy !== undefined) {
      (decision.isAllowed ? stats.policyShadowAllowed : stats.policyShadowDenied)(decision.policy).increment();
    }
    if (log.debugEnabled) {
      log.debug(decision.isAllowed ? "shadow allowed" : "shadow denied", { policy: decision.policy ?? "none" });
    }
    addResult(stream.info, `${policies.shadowRulesStatPrefix}shadow_`, decision);
  }
}

function decide(stream: HttpStream, rules: Rules): Decision {
  const { info } = stream;
  const policy = rules.matchedPolicy(stream.request, info);
  switch (rules.action) {
    case "allow":
      return { isAllowed: policy !== undefined, policy };
    case "deny":
      return { isAllowed: policy === undefined, policy };
    case "log":
      addMetadata(info, commonNamespace, { access_log_hint: policy !== undefined });
      return { isAllowed: true, policy };
  }
}

/** What the rules said, for the access log and for filters after this one. */
function addResult(info: StreamInfo, prefix: string, { isAllowed, policy }: Decision): void {
  const result: Record<string, unknown> = { [`${prefix}engine_result`]: isAllowed ? "allowed" : "denied" };
  if (policy !== undefined) result[`${prefix}effective_policy_id`] = policy;
  addMetadata(info, rbacNamespace, result);
}

function addMetadata(info: StreamInfo, namespace: string, fields: Readonly<Record<string, unknown>>): void {
  const metadata = (info.dynamicMetadata ??= {});
  metadata[namespace] = { ...metadata[namespace], ...fields };
}
