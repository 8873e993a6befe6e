// The table of operators of Envoy's substitution format (docs: configuration/observability/access_log). An operator
// that is in no table is an error.
import { randomUUID } from "node:crypto";
import { compileLogExpression } from "../cel/compile-expression.ts";
import { asked } from "../http/asked-facts.ts";
import { grpcStatus, grpcStatusName } from "../http/grpc-status.ts";
import { withoutControlCharacters } from "../http/header-value.ts";
import { type ResponseFlag, connectionFlagsText, responseFlagsText } from "../http/response-flags.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import { allAddressOperators } from "./address-operators.ts";
import { byteOperators } from "./byte-operators.ts";
import { metadataOperators } from "./metadata-operators.ts";
import { number, ofOptional, text } from "./operator-makers.ts";
import type { CompiledOperator, FormatEnvironment, FormatValue, OperatorCompiler } from "./operator.ts";
import { isCredential, namesHeader, redactedValue, redactText } from "./redact-query.ts";
import { requestOperators } from "./request-operators.ts";
import { timeOperators } from "./time-operators.ts";
import { tlsOperators } from "./tls-operators.ts";
import { unavailableOperators } from "./unavailable-operators.ts";

const grpcStatusNumber: FormatValue = (info, request, response) => {
  const status = grpcStatus(info, request, response);
  return status === undefined ? undefined : String(status);
};

const compileGrpcStatus: OperatorCompiler = (argument = "CAMEL_STRING") => {
  if (argument === "NUMBER") return { value: grpcStatusNumber, isNumber: true };
  const spelling = argument === "CAMEL_STRING" ? "camel" : argument === "SNAKE_STRING" ? "snake" : undefined;
  if (spelling === undefined) return { error: "knows CAMEL_STRING, SNAKE_STRING and NUMBER" };
  return {
    value: (info, request, response) => {
      const status = grpcStatus(info, request, response);
      return status === undefined ? undefined : grpcStatusName(status, spelling);
    },
    isNumber: false,
  };
};

const compileEnvironment: OperatorCompiler = (argument, { environment }) => {
  if (argument === undefined || argument === "") return { error: "needs (NAME)" };
  const value = environment[argument] ?? "-";
  return { value: () => value, isNumber: false };
};

const compileHostname: OperatorCompiler = (_argument, { hostname }) => ({ value: () => hostname, isNumber: false });

/** Envoy's long names (docs: %RESPONSE_FLAGS_LONG%). */
const longFlagNames: Readonly<Record<ResponseFlag, string>> = {
  LH: "FailedLocalHealthCheck",
  UH: "NoHealthyUpstream",
  UT: "UpstreamRequestTimeout",
  LR: "LocalReset",
  UR: "UpstreamRemoteReset",
  UF: "UpstreamConnectionFailure",
  UC: "UpstreamConnectionTermination",
  UO: "UpstreamOverflow",
  NR: "NoRouteFound",
  DI: "DelayInjected",
  FI: "FaultInjected",
  RL: "RateLimited",
  UAEX: "UnauthorizedExternalService",
  RLSE: "RateLimitServiceError",
  DC: "DownstreamConnectionTermination",
  URX: "UpstreamRetryLimitExceeded",
  SI: "StreamIdleTimeout",
  IH: "InvalidEnvoyRequestHeaders",
  DPE: "DownstreamProtocolError",
  UMSDR: "UpstreamMaxStreamDurationReached",
  RFCF: "ResponseFromCacheFilter",
  NFCF: "NoFilterConfigFound",
  DT: "DurationTimeout",
  UPE: "UpstreamProtocolError",
  NC: "NoClusterFound",
  OM: "OverloadManagerTerminated",
  DF: "DnsResolutionFailed",
  DO: "DropOverload",
  DR: "DownstreamRemoteReset",
};

/** None is a value of its own, `-`, in JSON too. */
function longFlags(info: StreamInfo): string {
  if (info.responseFlags === 0) return "-";
  // The short text has Envoy's order.
  return shortFlags(info)
    .split(",")
    .map((name) => longFlagNames[name as ResponseFlag])
    .join(",");
}

function shortFlags({ responseFlags: bits, isConnection }: Parameters<FormatValue>[0]): string {
  return isConnection ? connectionFlagsText(bits) : responseFlagsText(bits);
}

/** While headers of a response are being changed it has not been sent yet, and `info` does not know its status. */
const responseCode: FormatValue = (info, _request, response) =>
  String(info.responseCode === 0 ? (response?.status ?? 0) : info.responseCode);

const compileCodeDetails: OperatorCompiler = (argument) => ({
  value: ({ responseCodeDetails }) =>
    argument === "ALLOW_WHITESPACES" ? responseCodeDetails : responseCodeDetails?.replaceAll(" ", "_"),
  isNumber: false,
});

/** An expression's value; what it cannot be found for is missing. */
function celOperator(isTyped: boolean): OperatorCompiler {
  return (argument = "", { redactedParameters }) => {
    const expression = compileLogExpression(argument);
    if (!expression.ok) return { error: `Not able to parse expression: ${expression.reason}` };
    const isOfCredentials = redactedParameters !== undefined && namesHeader(argument, isCredential);
    const read: (...of: Parameters<FormatValue>) => unknown = (info, request, response) => {
      let value: unknown = expression.value({ info, request, response });
      if (redactedParameters !== undefined) value = shownValue(value, redactedParameters, isOfCredentials);
      return value !== null && typeof value === "object" && !Array.isArray(value) ? undefined : value;
    };
    const value: FormatValue = (info, request, response) => {
      const found = read(info, request, response);
      if (found === undefined || found === null) return undefined;
      // Of metadata, say, in which a stranger's words may stand.
      return typeof found === "string" ? withoutControlCharacters(found) : JSON.stringify(found);
    };
    const { unsupported } = expression;
    const told =
      unsupported === undefined ? {} : { warning: `'${argument}' cannot be evaluated as a whole: ${unsupported}` };
    if (!isTyped) return { value, isNumber: false, ...told };
    const json: FormatValue = (info, request, response) => JSON.stringify(read(info, request, response));
    return { value, json, isNumber: false, ...told };
  };
}

/** Whether there is one, and how many, may be asked of credentials too. */
function shownValue(value: unknown, names: ReadonlySet<string>, isOfCredentials: boolean): unknown {
  if (Array.isArray(value)) return value.map((each) => shownValue(each, names, isOfCredentials));
  if (typeof value !== "string") return value;
  return isOfCredentials ? redactedValue : redactText(value, names);
}

interface CoalescedOperator {
  readonly command?: unknown;
  readonly param?: unknown;
  readonly max_length?: unknown;
}

/** `({"operators": […]})`: the first that has a value. */
const compileCoalesce: OperatorCompiler = (argument, environment) => {
  let config: unknown;
  try {
    config = JSON.parse(argument ?? "");
  } catch (error) {
    return { error: `failed to parse JSON configuration: ${error instanceof Error ? error.message : String(error)}` };
  }
  const list: unknown =
    typeof config === "object" && config !== null && "operators" in config ? config.operators : undefined;
  if (!Array.isArray(list)) return { error: "JSON configuration must contain 'operators' array" };
  if (list.length === 0) return { error: "'operators' array must not be empty" };
  const values: FormatValue[] = [];
  for (const [index, each] of (list as unknown[]).entries()) {
    const operator = compileCoalesced(each, environment);
    if ("error" in operator) return { error: `failed to parse operator at index ${index}: ${operator.error}` };
    values.push(operator.value);
  }
  const value: FormatValue = (info, request, response) => {
    for (const read of values) {
      const found = read(info, request, response);
      if (found !== undefined && found !== "") return found;
    }
    return undefined;
  };
  return { value, isNumber: false };
};

function compileCoalesced(entry: unknown, environment: FormatEnvironment): ReturnType<OperatorCompiler> {
  if (typeof entry === "string") return compileOperator(entry, undefined, undefined, environment);
  if (typeof entry !== "object" || entry === null) {
    return { error: "operator entry must be either a string (command name) or an object with 'command' field" };
  }
  const { command, param, max_length: maxLength } = entry as CoalescedOperator;
  if (typeof command !== "string") return { error: "operator object must have 'command' field" };
  const argument = typeof param === "string" ? param : undefined;
  return compileOperator(command, argument, typeof maxLength === "number" ? maxLength : undefined, environment);
}

const routeTime = number(({ routeResolutions, routeResolutionMs }) =>
  routeResolutions === 0 ? undefined : String(Math.round(routeResolutionMs * 1000)),
);
const roundTrip = number(({ listener }) => listener?.roundTripMs()?.toString());

/** A TCP proxy's connection has an upstream as such, a request once a host was chosen (Envoy: `UpstreamInfo`). */
const mayHaveUpstream = ({ upstreamHost, isConnection, isWithoutId }: StreamInfo): boolean =>
  upstreamHost !== undefined || (isConnection && !isWithoutId);

/** Those that have a value; `unavailableOperators` are Envoy's others. */
export const operators: Readonly<Record<string, OperatorCompiler>> = {
  ...requestOperators,
  ...timeOperators,
  ...allAddressOperators,
  ...metadataOperators,
  ...tlsOperators,
  ...byteOperators,
  // What was no request came on a connection all the same, whatever version it claimed.
  PROTOCOL: text((info, request) => request?.protocol ?? info.connectionProtocol),
  UPSTREAM_PROTOCOL: text((info) => info.upstreamProtocol),
  RESPONSE_CODE: number(responseCode),
  RESPONSE_CODE_DETAILS: compileCodeDetails,
  RESPONSE_FLAGS: text(shortFlags),
  RESPONSE_FLAGS_LONG: text((info) => longFlags(info)),
  DOWNSTREAM_CX_RTT: (argument, environment) => {
    asked.roundTrips = true;
    return roundTrip(argument, environment);
  },
  DOWNSTREAM_DETECTED_CLOSE_TYPE: text((info) => info.downstreamCloseType),
  UPSTREAM_DETECTED_CLOSE_TYPE: text((info) => (mayHaveUpstream(info) ? info.upstreamCloseType : undefined)),
  CONNECTION_TERMINATION_DETAILS: text((info) => info.connectionTerminationDetails),
  ROUTE_RESOLUTION_COUNT: number((info) => String(info.routeResolutions)),
  ROUTE_RESOLUTION_TIME_US: (argument, environment) => {
    asked.routeTimes = true;
    return routeTime(argument, environment);
  },
  ROUTE_NAME: text((info) => ofOptional(info.route?.name)),
  HOSTNAME: compileHostname,
  ENVIRONMENT: compileEnvironment,
  UNIQUE_ID: text(() => randomUUID()),
  UPSTREAM_CLUSTER: text((info) => info.cluster?.observabilityName),
  UPSTREAM_CLUSTER_RAW: text((info) => info.cluster?.name),
  UPSTREAM_TRANSPORT_FAILURE_REASON: text(({ upstreamTransportFailureReason: reason }) =>
    reason === undefined ? undefined : withoutControlCharacters(reason).replaceAll(" ", "_"),
  ),
  UPSTREAM_REQUEST_ATTEMPT_COUNT: number((info) => String(info.attemptCount)),
  CONNECTION_ID: number(({ listener }) => (listener === undefined ? undefined : String(listener.connectionId))),
  UPSTREAM_CONNECTION_ID: number(({ upstreamConnectionId }) => String(upstreamConnectionId)),
  UPSTREAM_CONNECTION_IDS_ATTEMPTED: text(({ triedConnectionIds, upstreamConnectionId: last }) =>
    last === 0 ? undefined : (triedConnectionIds ?? [last]).join(","),
  ),
  LISTENER_NAME: text((info) => ofOptional(info.listener?.name)),
  FILTER_CHAIN_NAME: text((info) => ofOptional(info.listener?.chainName)),
  TRACE_ID: text((info) => info.span?.traceId),
  SPAN_ID: text((info) => info.span?.spanId),
  GRPC_STATUS: compileGrpcStatus,
  GRPC_STATUS_NUMBER: number(grpcStatusNumber),
  LOCAL_REPLY_BODY: text((info) => info.localReplyBody ?? ""),
  // No filter here sets one.
  CUSTOM_FLAGS: text(() => ""),
  ACCESS_LOG_TYPE: text((info) => info.accessLogType),
  CEL: celOperator(false),
  TYPED_CEL: celOperator(true),
  COALESCE: compileCoalesce,
};

const missing: CompiledOperator = { value: () => undefined, isNumber: false };

export function compileOperator(
  name: string,
  argument: string | undefined,
  maxLength: number | undefined,
  environment: FormatEnvironment,
): ReturnType<OperatorCompiler> {
  const compile = Object.hasOwn(operators, name) ? operators[name] : undefined;
  if (compile === undefined) {
    return Object.hasOwn(unavailableOperators, name)
      ? missing
      : { error: `Not supported field in StreamInfo: ${name}` };
  }
  const operator = compile(argument, environment);
  if ("error" in operator) return { error: `%${name}%: ${operator.error}` };
  return maxLength === undefined ? operator : truncated(operator, maxLength);
}

/** Cuts to `maxLength` characters, `%REQ(X):20%`. */
function truncated({ value, json, warning }: CompiledOperator, maxLength: number): CompiledOperator {
  const cut: FormatValue = (info, request, response) => {
    const result = value(info, request, response);
    return result !== undefined && result.length > maxLength ? result.slice(0, maxLength) : result;
  };
  const told = warning === undefined ? {} : { warning };
  return { value: cut, isNumber: false, ...told, ...(json !== undefined && { json }) };
}
