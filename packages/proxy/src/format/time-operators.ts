// Operators of times and durations: when a stream began and how long its parts took.
import type { StreamInfo } from "../http/stream-info.ts";
import { number } from "./operator-makers.ts";
import type { OperatorCompiler } from "./operator.ts";
import { compileTimeFormat, isoTime, localIsoTime } from "./start-time.ts";

function timeOperator(read: (info: StreamInfo) => number, zone: "utc" | "local"): OperatorCompiler {
  return (argument) => {
    const whole = zone === "utc" ? isoTime : localIsoTime;
    const format = argument === undefined || argument === "" ? whole : compileTimeFormat(argument, zone);
    if (typeof format !== "function") return format;
    return { value: (info) => format(read(info)), isNumber: false };
  };
}

const startTime = (info: StreamInfo): number => info.startTimeMs;

/** The points of %COMMON_DURATION%: monotonic, in milliseconds; a negative number is one that was never reached. */
export const streamPoints = {
  DS_RX_BEG: (info) => info.startMonotonicMs,
  DS_RX_END: (info) => info.requestEndedMs,
  US_TX_BEG: (info) => info.upstreamRequestStartedMs,
  US_TX_END: ({ upstreamRequestStartedMs: startedMs, requestEndedMs }) =>
    startedMs < 0 || requestEndedMs < 0 ? -1 : Math.max(startedMs, requestEndedMs),
  US_RX_BEG: (info) => info.upstreamResponseStartedMs,
  US_RX_BODY_BEG: (info) => info.upstreamBodyStartedMs,
  US_RX_END: (info) => info.upstreamResponseEndedMs,
  DS_TX_BEG: (info) => info.responseStartedMs,
  DS_TX_END: (info) => info.responseEndedMs,
  DS_HS_BEG: (info) => info.downstreamTls?.startedMs ?? -1,
  DS_HS_END: (info) => info.downstreamTls?.establishedMs ?? -1,
  US_CX_BEG: (info) => info.upstreamConnectStartedMs,
  US_CX_END: (info) => info.upstreamConnectedMs,
  US_HS_END: (info) => info.upstreamTls?.establishedMs ?? -1,
} satisfies Record<string, (info: StreamInfo) => number>;

const points: Readonly<Record<string, (info: StreamInfo) => number>> = streamPoints;

const unitsPerMs: Readonly<Record<string, number>> = { ms: 1, us: 1000, ns: 1_000_000 };

/** What lies between two points, in whole units. */
function between(first: string, last: string, unit = "ms"): (info: StreamInfo) => string | undefined {
  // A name that is none of these is a point of some filter's, and none here sets one.
  const from = points[first] ?? (() => -1);
  const to = points[last] ?? (() => -1);
  const units = unitsPerMs[unit]!;
  return (info) => {
    const [begin, end] = [from(info), to(info)];
    return begin < 0 || end < begin ? undefined : String(Math.floor((end - begin) * units));
  };
}

/** `(START:END:PRECISION)` */
const compileCommonDuration: OperatorCompiler = (argument = "") => {
  const [first = "", last, unit = "ms", ...more] = argument.split(":");
  if (last === undefined || more.length > 0) return { error: `Invalid common duration configuration: ${argument}.` };
  if (unitsPerMs[unit] === undefined) return { error: `Invalid common duration precision: ${unit}.` };
  return { value: between(first, last, unit), isNumber: true };
};

export const timeOperators: Readonly<Record<string, OperatorCompiler>> = {
  START_TIME: timeOperator(startTime, "utc"),
  START_TIME_LOCAL: timeOperator(startTime, "local"),
  EMIT_TIME: timeOperator(Date.now, "utc"),
  EMIT_TIME_LOCAL: timeOperator(Date.now, "local"),
  DURATION: number((info) => String(Math.floor(info.durationMs))),
  COMMON_DURATION: compileCommonDuration,
  // Of a connection that has carried other requests before, it is less than nothing (as Envoy's).
  DOWNSTREAM_HANDSHAKE_DURATION: number(({ downstreamTls, startMonotonicMs }) =>
    downstreamTls === undefined ? undefined : String(Math.trunc(downstreamTls.establishedMs - startMonotonicMs)),
  ),
  UPSTREAM_CONNECTION_POOL_READY_DURATION: number(({ upstreamAskedMs, upstreamPoolReadyMs }) =>
    upstreamPoolReadyMs < 0 ? undefined : String(Math.floor(upstreamPoolReadyMs - upstreamAskedMs)),
  ),
  REQUEST_DURATION: number(between("DS_RX_BEG", "DS_RX_END")),
  REQUEST_TX_DURATION: number(between("DS_RX_BEG", "US_TX_END")),
  RESPONSE_DURATION: number(between("DS_RX_BEG", "US_RX_BEG")),
  RESPONSE_TX_DURATION: number(between("US_RX_BEG", "DS_TX_END")),
};
