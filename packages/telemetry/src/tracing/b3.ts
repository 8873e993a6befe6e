// B3, Zipkin's headers of trace context (https://github.com/openzipkin/b3-propagation): one header, or several.

/** What a client says of the decision: `debug` is sampled, whatever else is said. */
export type B3Decision = "sampled" | "not_sampled" | "debug" | undefined;

export interface B3Context {
  /** Undefined: the headers carry a decision alone. */
  readonly ids:
    | { readonly traceId: string; readonly spanId: string; readonly parentSpanId: string | undefined }
    | undefined;
  readonly decision: B3Decision;
}

const ids = /^([0-9a-f]{16}|[0-9a-f]{32})-([0-9a-f]{16})(?:-([01d])(?:-([0-9a-f]{16}))?)?$/;
const traceIdPattern = /^(?:[0-9a-f]{16}|[0-9a-f]{32})$/;
const spanIdPattern = /^[0-9a-f]{16}$/;
const zero = /^0+$/;

const singleDecisions: Readonly<Record<string, B3Decision>> = { "0": "not_sampled", "1": "sampled", d: "debug" };

/**
 * `b3: TRACE-SPAN-DECISION-PARENT`, of which the parent, or both of the last, may be left out, or a decision alone;
 * undefined: not sound.
 */
export function parseB3(text: string): B3Context | undefined {
  if (Object.hasOwn(singleDecisions, text)) return { ids: undefined, decision: singleDecisions[text] };
  const match = ids.exec(text);
  if (match === null) return undefined;
  const [, traceId = "", spanId = "", decision, parentSpanId] = match;
  if (zero.test(traceId) || zero.test(spanId)) return undefined;
  return {
    ids: { traceId, spanId, parentSpanId: presentId(parentSpanId) },
    decision: decision === undefined ? undefined : singleDecisions[decision],
  };
}

/** Values of `x-b3-*`. */
export interface B3Headers {
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
  readonly parentSpanId: string | undefined;
  readonly sampled: string | undefined;
  readonly flags: string | undefined;
}

/** Undefined: not sound, an id without the other among it. */
export function parseB3Headers({ traceId, spanId, parentSpanId, sampled, flags }: B3Headers): B3Context | undefined {
  const decision = headersDecision(sampled, flags);
  if (traceId === undefined && spanId === undefined) return { ids: undefined, decision };
  if (traceId === undefined || !traceIdPattern.test(traceId) || zero.test(traceId)) return undefined;
  if (spanId === undefined || !spanIdPattern.test(spanId) || zero.test(spanId)) return undefined;
  if (parentSpanId !== undefined && parentSpanId !== "" && !spanIdPattern.test(parentSpanId)) return undefined;
  return { ids: { traceId, spanId, parentSpanId: presentId(parentSpanId) }, decision };
}

/** A parent that is nobody's is none. */
function presentId(id: string | undefined): string | undefined {
  return id === undefined || id === "" || zero.test(id) ? undefined : id;
}

function headersDecision(sampled: string | undefined, flags: string | undefined): B3Decision {
  if (flags === "1") return "debug";
  if (sampled === undefined) return undefined;
  // Early tracers wrote words.
  return sampled === "1" || sampled === "true" ? "sampled" : "not_sampled";
}

export function b3Text(traceId: string, spanId: string, isSampled: boolean, parentSpanId: string | undefined): string {
  const parent = parentSpanId === undefined ? "" : `-${parentSpanId}`;
  return `${traceId}-${spanId}-${isSampled ? "1" : "0"}${parent}`;
}
