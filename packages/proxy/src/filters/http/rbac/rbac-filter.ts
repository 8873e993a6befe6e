// Decides by policies whether a request goes on (extensions.filters.http.rbac.v3.RBAC): rules that hold, and shadow
// rules that only say what they would have done.
import type { Logger } from "@tulle/telemetry";
import type { FilterStatus, HttpFilter, HttpStream } from "../../../http/filter.ts";
import type { Rules } from "./compile-rules.ts";
import { decide, type DecisionNotes } from "./decision.ts";
import { deniedDetails } from "./denied-details.ts";
import type { RbacStats } from "./rbac-stats.ts";

export interface RbacPolicies {
  /** Undefined = nothing is refused. */
  readonly rules: Rules | undefined;
  readonly shadowRules: Rules | undefined;
  readonly notes: DecisionNotes;
  readonly shadowNotes: DecisionNotes;
  readonly countsPolicies: boolean;
}

export interface RbacFilterOptions {
  readonly name: string;
  readonly policies: RbacPolicies;
  readonly stats: RbacStats;
  readonly log: Logger;
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
    const decision = decide(policies.rules, stream.request, stream.info, stream.info);
    const { stats, log } = this.#options;
    (decision.isAllowed ? stats.allowed : stats.denied).increment();
    if (policies.countsPolicies && decision.policy !== undefined) {
      (decision.isAllowed ? stats.policyAllowed : stats.policyDenied)(decision.policy).increment();
    }
    if (log.debugEnabled) {
      log.debug(decision.isAllowed ? "enforced allowed" : "enforced denied", { policy: decision.policy ?? "none" });
    }
    policies.notes.add(stream.info, decision);
    if (decision.isAllowed) return "continue";
    stream.sendLocalReply({
      status: 403,
      body: "RBAC: access denied",
      details: deniedDetails(decision.policy ?? "none"),
    });
    return "stop";
  }

  #judgeInShadow(stream: HttpStream, rules: Rules, policies: RbacPolicies): void {
    const decision = decide(rules, stream.request, stream.info, stream.info);
    const { stats, log } = this.#options;
    (decision.isAllowed ? stats.shadowAllowed : stats.shadowDenied).increment();
    if (policies.countsPolicies && decision.policy !== undefined) {
      (decision.isAllowed ? stats.policyShadowAllowed : stats.policyShadowDenied)(decision.policy).increment();
    }
    if (log.debugEnabled) {
      log.debug(decision.isAllowed ? "shadow allowed" : "shadow denied", { policy: decision.policy ?? "none" });
    }
    policies.shadowNotes.add(stream.info, decision);
  }
}
