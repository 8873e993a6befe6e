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

/** What the rules said, for the access log and for filters after this one. */
export function addResult(judged: Judged, namespace: string, prefix: string, { isAllowed, policy }: Decision): void {
  const result: Record<string, unknown> = { [`${prefix}engine_result`]: isAllowed ? "allowed" : "denied" };
  if (policy !== undefined) result[`${prefix}effective_policy_id`] = policy;
  addMetadata(judged, namespace, result);
}

function addMetadata(judged: Judged, namespace: string, fields: Readonly<Record<string, unknown>>): void {
  const metadata = (judged.dynamicMetadata ??= {});
  metadata[namespace] = { ...metadata[namespace], ...fields };
}
