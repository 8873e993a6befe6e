// The table of operators of Envoy's substitution format (docs: configuration/observability/access_log). What the proxy
// cannot know yet (traces) is a missing value; an operator that is not in the table is an error.
import { grpcStatus, grpcStatusName } from "../http/grpc-status.ts";
import { randomUUID } from "node:crypto";
import { grpcMessagesKey, grpcMessagesText } from "../http/grpc-messages.ts";
import { withoutControlCharacters } from "../http/header-value.ts";
import { type ResponseFlag, connectionFlagsText, responseFlagsText } from "../http/response-flags.ts";
import type { CompiledOperator, FormatValue, OperatorCompiler } from "./operator.ts";
import { redactQuery } from "./redact-query.ts";
import { compileTimeFormat, isoTime } from "./start-time.ts";
import { tlsOperators } from "./tls-operators.ts";

const text = (value: FormatValue): OperatorCompiler => {
  return (argument) => (argument === undefined ? { value, isNumber: false } : { error: "takes no argument" });
};

const number = (value: FormatValue): OperatorCompiler => {
  return (argument) => (argument === undefined ? { value, isNumber: true } : { error: "takes no argument" });
};

/** A value that nothing here gives. */
const missing: OperatorCompiler = () => ({ value: () => undefined, isNumber: false });

function optionalText(value: string | undefined): string | undefined {
  return value === undefined || value === "" ? undefined : value;
}

function withoutPort(address: string | undefined): string | undefined {
  if (address === undefined || address.startsWith("/")) return address;
  const colon = address.lastIndexOf(":");
  if (colon < 0) return address;
  return address.startsWith("[") ? address.slice(1, colon - 1) : address.slice(0, colon);
}

function portOf(address: string | undefined): string | undefined {
  if (address === undefined || address.startsWith("/")) return undefined;
  const colon = address.lastIndexOf(":");
  return colon < 0 ? undefined : address.slice(colon + 1);
}

/** The three operators of an address: whole, without port, port alone. */
function addressOperators(name: string, read: FormatValue): Record<string, OperatorCompiler> {
  return {
    [name]: text(read),
    [`${name}_WITHOUT_PORT`]: text((info, request, response) => withoutPort(read(info, request, response))),
    [`${name}_PORT`]: number((info, request, response) => portOf(read(info, request, response))),
  };
}

/** An empty Host is a value, no Host is none. */
const authorityOf: FormatValue = (_info, request) =>
  request === undefined || request.hasHost === false ? undefined : request.authority;

const requestPseudoHeaders: Readonly<Record<string, FormatValue>> = {
  ":method": (_info, request) => optionalText(request?.method),
  ":path": (_info, request) => optionalText(request?.path),
  ":authority": authorityOf,
  host: authorityOf,
  ":scheme": (_info, request) => optionalText(request?.scheme),
};

function requestHeaderValue(name: string): FormatValue {
  const lower = name.toLowerCase();
  return requestPseudoHeaders[lower] ?? ((_info, request) => request?.headers.get(lower));
}

function responseHeaderValue(name: string): FormatValue {
  const lower = name.toLowerCase();
  if (lower === ":status") return (_info, _request, response) => response && String(response.status);
  return (_info, _request, response) => response?.headers.get(lower);
}

function responseTrailerValue(name: string): FormatValue {
  const lower = name.toLowerCase();
  return (info) => info.responseTrailers?.get(lower);
}

const grpcStatusNumber: FormatValue = (info, request, response) => {
  const status = grpcStatus(info, request, response);
  return status === undefined ? undefined : String(status);
};

const compileGrpcStatus: OperatorCompiler = (argument = "CAMEL_STRING") => {
  if (argument === "NUMBER") return { value: grpcStatusNumber, isNumber: false };
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

/** `X?Y`: the value of X, or of Y where X is absent. */
function headerOperator(read: (name: string) => FormatValue): OperatorCompiler {
  return (argument) => {
    const names = (argument ?? "").split("?");
    if (names.length > 2 || names.some((name) => name === "")) return { error: "needs (NAME) or (NAME?OTHER)" };
    const main = read(names[0]!);
    if (names.length === 1) return { value: main, isNumber: false };
    const other = read(names[1]!);
    return {
      value: (info, request, response) => main(info, request, response) ?? other(info, request, response),
      isNumber: false,
    };
  };
}

function metadataValue(root: unknown, keys: readonly string[]): string | undefined {
  let value = root;
  for (const key of keys) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  if (value === undefined || value === null) return undefined;
  return typeof value === "string" ? withoutControlCharacters(value) : JSON.stringify(value);
}

/** `(namespace:key:key…)` into JSON metadata. */
function metadataOperator(read: (info: Parameters<FormatValue>[0]) => unknown): OperatorCompiler {
  return (argument) => {
    const keys = (argument ?? "").split(":");
    if (keys[0] === "") return { error: "needs (NAMESPACE:KEY)" };
    return { value: (info) => metadataValue(read(info), keys), isNumber: false };
  };
}

/** `(KEY)` or `(KEY:PLAIN)`: messages of a gRPC call are all that filters here leave there, and have no FIELD. */
const compileFilterState: OperatorCompiler = (argument) => {
  const [key, form = "TYPED"] = (argument ?? "").split(":");
  if (key === undefined || key === "") return { error: "needs (KEY)" };
  if (!["TYPED", "PLAIN", "FIELD"].includes(form)) return { error: "knows TYPED, PLAIN and FIELD" };
  if (key !== grpcMessagesKey || form === "FIELD") return { value: () => undefined, isNumber: false };
  return { value: ({ grpcMessages }) => grpcMessages && grpcMessagesText(grpcMessages, form), isNumber: false };
};

const metadataSources: Readonly<Record<string, (info: Parameters<FormatValue>[0]) => unknown>> = {
  DYNAMIC: (info) => info.dynamicMetadata,
  ROUTE: (info) => info.route?.metadata,
  CLUSTER: (info) => info.cluster?.metadata,
  UPSTREAM_HOST: (info) => info.upstreamHost?.metadata,
};

const compileMetadata: OperatorCompiler = (argument, environment) => {
  const [source, ...keys] = (argument ?? "").split(":");
  const read = metadataSources[source ?? ""];
  if (read === undefined) return { error: `knows ${Object.keys(metadataSources).join(", ")}, not '${source}'` };
  return metadataOperator(read)(keys.join(":"), environment);
};

const compileTime: OperatorCompiler = (argument) => {
  if (argument === undefined || argument === "") return { value: (info) => isoTime(info.startTimeMs), isNumber: false };
  const format = compileTimeFormat(argument);
  if ("error" in format) return format;
  return { value: (info) => format(info.startTimeMs), isNumber: false };
};

const compileEnvironment: OperatorCompiler = (argument, { environment }) => {
  if (argument === undefined || argument === "") return { error: "needs (NAME)" };
  const value = environment[argument];
  return { value: () => value, isNumber: false };
};

const compileHostname: OperatorCompiler = (_argument, { hostname }) => ({ value: () => hostname, isNumber: false });

const compileQueryParameter: OperatorCompiler = (argument) => {
  if (argument === undefined || argument === "") return { error: "needs (NAME)" };
  return {
    value: (_info, request) => {
      const query = request?.path.indexOf("?") ?? -1;
      if (query < 0) return undefined;
      const value = new URLSearchParams(request!.path.slice(query + 1)).get(argument);
      // An escaped line feed must not begin another line of a log.
      return value === null ? undefined : withoutControlCharacters(value);
    },
    isNumber: false,
  };
};

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
function longFlags(bits: number): string {
  if (bits === 0) return "-";
  // The short text has Envoy's order.
  return responseFlagsText(bits)
    .split(",")
    .map((name) => longFlagNames[name as ResponseFlag])
    .join(",");
}

function pathWithoutQuery(path: string | undefined): string | undefined {
  const query = path?.indexOf("?") ?? -1;
  return query < 0 ? path : path!.slice(0, query);
}

const pathHeader: OperatorCompiler = (argument, environment) => {
  const inner = headerOperator(requestHeaderValue)(argument, environment);
  if ("error" in inner) return inner;
  const read = inner.value;
  const names = environment.redactedParameters;
  if (names !== undefined) {
    return {
      value: (info, request, response) => {
        const path = read(info, request, response);
        return path === undefined ? undefined : redactQuery(path, names);
      },
      isNumber: false,
    };
  }
  return { value: (info, request, response) => pathWithoutQuery(read(info, request, response)), isNumber: false };
};

function shortFlags({ responseFlags: bits, isConnection }: Parameters<FormatValue>[0]): string {
  return isConnection ? connectionFlagsText(bits) : responseFlagsText(bits);
}

export const operators: Readonly<Record<string, OperatorCompiler>> = {
  REQ: headerOperator(requestHeaderValue),
  RESP: headerOperator(responseHeaderValue),
  REQUEST_HEADER: headerOperator(requestHeaderValue),
  RESPONSE_HEADER: headerOperator(responseHeaderValue),
  REQ_WITHOUT_QUERY: pathHeader,
  TRAILER: headerOperator(responseTrailerValue),
  RESPONSE_TRAILER: headerOperator(responseTrailerValue),
  QUERY_PARAM: compileQueryParameter,
  START_TIME: compileTime,
  // What was no request came on a connection all the same, whatever version it claimed.
  PROTOCOL: text((info, request) => request?.protocol ?? info.connectionProtocol),
  // While headers of a response are being changed it has not been sent yet, and `info` does not know its status.
  RESPONSE_CODE: number((info, _request, response) =>
    String(info.responseCode === 0 ? (response?.status ?? 0) : info.responseCode),
  ),
  RESPONSE_CODE_DETAILS: text((info) => info.responseCodeDetails?.replaceAll(" ", "_")),
  RESPONSE_FLAGS: text(shortFlags),
  RESPONSE_FLAGS_LONG: text((info) => longFlags(info.responseFlags)),
  CONNECTION_TERMINATION_DETAILS: text((info) => info.connectionTerminationDetails),
  BYTES_RECEIVED: number((info) => String(info.bytesReceived)),
  BYTES_SENT: number((info) => String(info.bytesSent)),
  DURATION: number((info) => String(Math.floor(info.durationMs))),
  RESPONSE_DURATION: number((info) =>
    info.upstreamServiceTimeMs < 0 ? undefined : String(Math.floor(info.upstreamServiceTimeMs)),
  ),
  ROUTE_NAME: text((info) => optionalText(info.route?.name)),
  HOSTNAME: compileHostname,
  ENVIRONMENT: compileEnvironment,
  UNIQUE_ID: text(() => randomUUID()),
  REQUESTED_SERVER_NAME: text((info) => optionalText(withoutControlCharacters(info.requestedServerName))),
  UPSTREAM_HOST: text((info) => info.upstreamHost?.addressText),
  UPSTREAM_HOST_NAME: text((info) => optionalText(info.upstreamHost?.hostname) ?? info.upstreamHost?.addressText),
  UPSTREAM_CLUSTER: text((info) => info.cluster?.observabilityName),
  UPSTREAM_CLUSTER_RAW: text((info) => info.cluster?.name),
  UPSTREAM_TRANSPORT_FAILURE_REASON: text((info) => info.upstreamTransportFailureReason?.replaceAll(" ", "_")),
  UPSTREAM_REQUEST_ATTEMPT_COUNT: number((info) => String(info.attemptCount)),
  ...addressOperators("UPSTREAM_REMOTE_ADDRESS", (info) =>
    // The peer of a connection, which a host that could not be reached is not.
    info.upstreamLocalAddress === undefined ? undefined : info.upstreamHost?.addressText,
  ),
  ...addressOperators("UPSTREAM_LOCAL_ADDRESS", (info) => info.upstreamLocalAddress),
  ...addressOperators("DOWNSTREAM_LOCAL_ADDRESS", (info) => info.downstreamLocalAddress),
  ...addressOperators("DOWNSTREAM_REMOTE_ADDRESS", (info) => info.downstreamRemoteAddress),
  ...addressOperators("DOWNSTREAM_DIRECT_REMOTE_ADDRESS", (info) => info.downstreamDirectRemoteAddress),
  FILTER_STATE: compileFilterState,
  DYNAMIC_METADATA: metadataOperator((info) => info.dynamicMetadata),
  CLUSTER_METADATA: metadataOperator((info) => info.cluster?.metadata),
  UPSTREAM_METADATA: metadataOperator((info) => info.upstreamHost?.metadata),
  METADATA: compileMetadata,
  TRACE_ID: missing,
  GRPC_STATUS: compileGrpcStatus,
  GRPC_STATUS_NUMBER: number(grpcStatusNumber),
  LOCAL_REPLY_BODY: text((info) => info.localReplyBody),
  VIRTUAL_CLUSTER_NAME: missing,
  ACCESS_LOG_TYPE: text((info) => info.accessLogType),
};

export function findOperator(name: string): OperatorCompiler | undefined {
  return operators[name] ?? tlsOperators[name];
}

/** Cuts to `maxLength` characters, `%REQ(X):20%`. */
export function truncated(operator: CompiledOperator, maxLength: number): CompiledOperator {
  const { value } = operator;
  return {
    value: (info, request, response) => {
      const result = value(info, request, response);
      return result !== undefined && result.length > maxLength ? result.slice(0, maxLength) : result;
    },
    isNumber: false,
  };
}
