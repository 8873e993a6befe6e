// Whether a request is traced: what its id says that somebody decided before, what its headers ask for, and shares of
// the traffic, drawn from the id so that every proxy of a mesh draws the same (Envoy:
// `ConnectionManagerUtility::mutateTracingRequestHeader`, extensions/request_id/uuid).
import type { HeaderMap } from "../http/header-map.ts";
import type { TraceReason } from "./active-span.ts";
import type { SamplingShares } from "./custom-tag.ts";

export interface RequestIdRules {
  /** pack_trace_reason */
  readonly packsReason: boolean;
  /** use_request_id_for_trace_sampling */
  readonly samplesById: boolean;
}

/** The digit of a UUID's version, which says `4` where nothing is traced. */
const reasonPosition = 14;
const uuidCharacters = 36;
const reasonDigits: Readonly<Record<TraceReason, string>> = {
  not_traceable: "4",
  sampling: "9",
  service_forced: "a",
  client_forced: "b",
};
const reasonsByDigit: Readonly<Record<string, TraceReason>> = {
  "9": "sampling",
  a: "service_forced",
  b: "client_forced",
};

const shareParts = 10_000;

export function decideTrace(
  headers: HeaderMap,
  shares: SamplingShares,
  { packsReason, samplesById }: RequestIdRules,
  random: () => number,
): TraceReason {
  // Without the id nobody decides: every request is (Envoy: mutateTracingRequestHeader).
  if (!samplesById) return "sampling";
  const id = headers.get("x-request-id");
  const number = id === undefined ? Number.NaN : idNumber(id);
  // A damaged id is drawn for by nobody.
  if (Number.isNaN(number)) return "not_traceable";
  const drawn = number % shareParts;
  const told = id === undefined ? "not_traceable" : reasonOf(id);
  let reason = told;
  if (reason === "not_traceable") {
    if (shares.client > 0 && headers.has("x-client-trace-id") && random() * shareParts < shares.client) {
      reason = "client_forced";
    } else if (headers.has("x-envoy-force-trace")) reason = "service_forced";
    else if (drawn < shares.random) reason = "sampling";
  }
  if (reason !== "not_traceable" && drawn >= shares.overall) reason = "not_traceable";
  if (reason !== told && packsReason && id?.length === uuidCharacters) {
    const packed = id.slice(0, reasonPosition) + reasonDigits[reason] + id.slice(reasonPosition + 1);
    headers.set("x-request-id", packed);
  }
  return reason;
}

function reasonOf(id: string): TraceReason {
  if (id.length !== uuidCharacters) return "not_traceable";
  return reasonsByDigit[id[reasonPosition]!] ?? "not_traceable";
}

/** Its first eight digits; NaN where they are none. */
function idNumber(id: string): number {
  if (id.length < 8) return Number.NaN;
  let number = 0;
  for (let index = 0; index < 8; index += 1) {
    const code = id.charCodeAt(index) | 0x20;
    const digit = code >= 48 && code <= 57 ? code - 48 : code >= 97 && code <= 102 ? code - 87 : -1;
    if (digit < 0) return Number.NaN;
    number = number * 16 + digit;
  }
  return number;
}
