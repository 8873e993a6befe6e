// Envoy's response flags: why a request did not go the plain way. A request collects bits; the access log, the metric
// label `response_flags` and the person who asks "why 503" read the short names (Envoy: `%RESPONSE_FLAGS%`).

export const responseFlags = {
  LH: { bit: 1 << 0, meaning: "local health check failed" },
  UH: { bit: 1 << 1, meaning: "no healthy upstream host" },
  UT: { bit: 1 << 2, meaning: "upstream request timed out" },
  LR: { bit: 1 << 3, meaning: "connection reset locally" },
  UR: { bit: 1 << 4, meaning: "upstream reset the stream" },
  UF: { bit: 1 << 5, meaning: "upstream connection failed" },
  UC: { bit: 1 << 6, meaning: "upstream connection terminated" },
  UO: { bit: 1 << 7, meaning: "upstream overflow (circuit breaker)" },
  NR: { bit: 1 << 8, meaning: "no route matched" },
  DI: { bit: 1 << 9, meaning: "delay injected" },
  FI: { bit: 1 << 10, meaning: "fault injected" },
  RL: { bit: 1 << 11, meaning: "rate limited" },
  UAEX: { bit: 1 << 12, meaning: "refused by external authorization" },
  RLSE: { bit: 1 << 13, meaning: "rate limit service failed" },
  DC: { bit: 1 << 14, meaning: "downstream connection terminated" },
  URX: { bit: 1 << 15, meaning: "retry limit exceeded" },
  SI: { bit: 1 << 16, meaning: "stream idle time-out" },
  IH: { bit: 1 << 17, meaning: "invalid value of a strictly checked header" },
  DPE: { bit: 1 << 18, meaning: "downstream protocol error" },
  UMSDR: { bit: 1 << 19, meaning: "upstream request reached its maximum duration" },
  RFCF: { bit: 1 << 20, meaning: "response from cache filter" },
  NFCF: { bit: 1 << 21, meaning: "no filter configuration found" },
  DT: { bit: 1 << 22, meaning: "downstream duration time-out" },
  UPE: { bit: 1 << 23, meaning: "upstream protocol error" },
  NC: { bit: 1 << 24, meaning: "upstream cluster not found" },
  OM: { bit: 1 << 25, meaning: "overload manager ended the request" },
  DF: { bit: 1 << 26, meaning: "DNS resolution failed" },
  DO: { bit: 1 << 27, meaning: "drop overload" },
  DR: { bit: 1 << 28, meaning: "the client reset its stream" },
} as const;

export type ResponseFlag = keyof typeof responseFlags;

const flagNames = Object.keys(responseFlags) as ResponseFlag[];
/** What stood against another try. The flag of the last one joins it. */
const retryFlags: readonly ResponseFlag[] = ["URX", "UO"];

/** `URX,UF`, `-` for none. Envoy lists flags in the order in which they were set, those of retries first. */
export const responseFlagsText = textInOrder([
  ...retryFlags,
  ...flagNames.filter((name) => !retryFlags.includes(name)),
]);

/** The same of a connection: its attempts come before the word that there were too many (`UF,URX`). */
export const connectionFlagsText = textInOrder([...flagNames.filter((name) => name !== "URX"), "URX"]);

function textInOrder(names: readonly ResponseFlag[]): (bits: number) => string {
  const texts = new Map([[0, "-"]]);
  return (bits) => {
    let text = texts.get(bits);
    if (text === undefined) {
      text = names.filter((name) => (bits & responseFlags[name].bit) !== 0).join(",");
      texts.set(bits, text);
    }
    return text;
  };
}
