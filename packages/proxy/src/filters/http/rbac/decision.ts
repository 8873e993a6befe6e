// What rules say of a request or of a connection, and where logs and other filters find it.
import type { RequestHead } from "../../../http/message.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";
import type { Rules } from "./compile-rules.ts";

export interface Decision {
  readonly isAllowed: boolean;
  /** The first that matched; undefined = none did. */
  readonly policy: string | undefined;
}

/** A request's information, or a connection's. */
type Judged = Pick<StreamInfo, "dynamicMetadata">;

/** Envoy's namespace of the word whether the access log should keep it. */
const commonNamespace = "envoy.common";

/** `judged` is told what LOG rules say. */
export function decide(rules: Rules, request: RequestHead, info: StreamInfo, judged: Judged): Decision {
  const policy = rules.matchedPolicy(request, info);
  switch (rules.action) {
    case "allow":
      return { isAllowed: policy !== undefined, policy };
    case "deny":
      return { isAllowed: policy === undefined, policy };
    case "log":
      addMetadata(judged, commonNamespace, { access_log_hint: policy !== undefined });
      return { isAllowed: true, policy };
  }
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * What rules said, for the access log and for filters after this one. They can say few different things, whose fields
 * are made once each: making them was 1.6 % of a request with one policy.
 */
export class DecisionNotes {
  readonly #namespace: string;
  readonly #prefix: string;
  readonly #allowed = new Map<string | undefined, Fields>();
  readonly #denied = new Map<string | undefined, Fields>();

  constructor(namespace: string, prefix: string) {
    this.#namespace = namespace;
    this.#prefix = prefix;
  }

  add(judged: Judged, decision: Decision): void {
    const known = decision.isAllowed ? this.#allowed : this.#denied;
    let fields = known.get(decision.policy);
    if (fields === undefined) known.set(decision.policy, (fields = this.#fieldsOf(decision)));
    addMetadata(judged, this.#namespace, fields);
  }

  #fieldsOf({ isAllowed, policy }: Decision): Fields {
    const result = { [`${this.#prefix}engine_result`]: isAllowed ? "allowed" : "denied" };
    return policy === undefined ? result : { ...result, [`${this.#prefix}effective_policy_id`]: policy };
  }
}

/** `fields` is shared: what a namespace holds is replaced, never changed. */
function addMetadata(judged: Judged, namespace: string, fields: Fields): void {
  const metadata = (judged.dynamicMetadata ??= {});
  const before = metadata[namespace];
  metadata[namespace] = before === undefined ? fields : { ...before, ...fields };
}
