// Decides by policies whether a connection goes on (extensions.filters.network.rbac.v3.RBAC): rules that hold, and
// shadow rules that only say what they would have done. Envoy asks at the first bytes of the client, with a connection
// to the host made and the host's greeting passed on; here the answer comes first.
import type { Logger } from "@tulle/telemetry";
import type { ConnectionInfo } from "../../../listener/connection-info.ts";
import type { NetworkFilter } from "../../../listener/network-filter.ts";
import { noRequest } from "../../../http/message.ts";
import type { Rules } from "../../http/rbac/compile-rules.ts";
import { decide, type Decision, type DecisionNotes } from "../../http/rbac/decision.ts";
import { deniedDetails } from "../../http/rbac/denied-details.ts";
import { connectionStreamInfo } from "../connection-stream-info.ts";
import type { NetworkRbacStats } from "./network-rbac-stats.ts";

export interface NetworkRbacOptions {
  readonly name: string;
  /** Undefined = nothing is refused. */
  readonly rules: Rules | undefined;
  readonly shadowRules: Rules | undefined;
  readonly shadowNotes: DecisionNotes;
  readonly stats: NetworkRbacStats;
  readonly log: Logger;
}

export class NetworkRbacFilter implements NetworkFilter {
  readonly name: string;
  readonly #options: NetworkRbacOptions;

  constructor(options: NetworkRbacOptions) {
    this.name = options.name;
    this.#options = options;
  }

  onNewConnection(connection: ConnectionInfo): "continue" | "close" {
    const { rules, shadowRules, stats } = this.#options;
    if (shadowRules !== undefined) this.#judgeInShadow(connection, shadowRules);
    if (rules === undefined) return "continue";
    const decision = decide(rules, noRequest, connectionStreamInfo(connection), connection);
    (decision.isAllowed ? stats.allowed : stats.denied).increment();
    this.#log("enforced", connection, decision);
    if (decision.isAllowed) return "continue";
    connection.terminationDetails = deniedDetails(decision.policy ?? "none");
    return "close";
  }

  #judgeInShadow(connection: ConnectionInfo, rules: Rules): void {
    const { stats, shadowNotes } = this.#options;
    const decision = decide(rules, noRequest, connectionStreamInfo(connection), connection);
    (decision.isAllowed ? stats.shadowAllowed : stats.shadowDenied).increment();
    this.#log("shadow", connection, decision);
    shadowNotes.add(connection, decision);
  }

  #log(mode: "enforced" | "shadow", { id }: ConnectionInfo, { isAllowed, policy = "none" }: Decision): void {
    const { log } = this.#options;
    if (log.debugEnabled) log.debug(`${mode} ${isAllowed ? "allowed" : "denied"}`, { connection: id, policy });
  }
}
