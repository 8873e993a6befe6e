// Operators that tell of a request's and a response's heads. Where a query may stand in them, the values of the
// parameters that the log is to leave out are left out.
import { randomUUID } from "node:crypto";
import { addressHeaders } from "@tulle/telemetry";
import { withoutControlCharacters } from "../http/header-value.ts";
import { headersBytes, requestHeadersBytes, responseHeadersBytes } from "../http/headers-bytes.ts";
import { number, ofOptional, text } from "./operator-makers.ts";
import type { FormatValue, OperatorCompiler } from "./operator.ts";
import { isCredential, redactedValue, redactParameter, redactQuery, redactText } from "./redact-query.ts";

/** An empty Host is a value, no Host is none. */
const authorityOf: FormatValue = (_info, request) =>
  request === undefined || request.hasHost === false ? undefined : request.authority;

export const requestPseudoHeaders: Readonly<Record<string, FormatValue>> = {
  ":method": (_info, request) => ofOptional(request?.method),
  ":path": (_info, request) => ofOptional(request?.path),
  ":authority": authorityOf,
  host: authorityOf,
  ":scheme": (_info, request) => ofOptional(request?.scheme),
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

/** `X?Y`: the value of X, or of Y where X is absent. */
function headerOperator(read: (name: string) => FormatValue): OperatorCompiler {
  return (argument, { redactedParameters }) => {
    const redacted = (name: string): FormatValue => {
      const value = read(name);
      if (redactedParameters === undefined) return value;
      if (isCredential(name.toLowerCase())) return (...of) => (value(...of) === undefined ? undefined : redactedValue);
      return mayHoldQuery.has(name.toLowerCase()) ? withoutSecrets(value, redactedParameters) : value;
    };
    const names = (argument ?? "").split("?");
    if (names.length > 2 || names.some((name) => name === "")) return { error: "needs (NAME) or (NAME?OTHER)" };
    const main = redacted(names[0]!);
    if (names.length === 1) return { value: main, isNumber: false };
    const other = redacted(names[1]!);
    return {
      value: (info, request, response) => main(info, request, response) ?? other(info, request, response),
      isNumber: false,
    };
  };
}

export const mayHoldQuery: ReadonlySet<string> = new Set(addressHeaders);

function withoutSecrets(value: FormatValue, names: ReadonlySet<string>): FormatValue {
  return (info, request, response) => {
    const found = value(info, request, response);
    return found === undefined ? undefined : redactQuery(found, names);
  };
}

function pathWithoutQuery(value: FormatValue): FormatValue {
  return (info, request, response) => {
    const path = value(info, request, response);
    const query = path?.indexOf("?") ?? -1;
    return query < 0 ? path : path!.slice(0, query);
  };
}

/** Leaves the whole query out, or the values of some parameters alone. */
const compileWithoutQuery: OperatorCompiler = (argument, environment) => {
  const inner = headerOperator(requestHeaderValue)(argument, environment);
  if ("error" in inner) return inner;
  if (environment.redactedParameters !== undefined && environment.withoutWholeQuery !== true) return inner;
  return { value: pathWithoutQuery(inner.value), isNumber: false };
};

const oneOf = (option: string, name: string, options: readonly string[]) => ({
  error: `Invalid ${name} option: '${option}', only ${options.map((each) => `'${each}'`).join("/")} are allowed`,
});

const originalPath = requestHeaderValue("x-envoy-original-path");
const currentPath = requestHeaderValue(":path");
const pathSources: Readonly<Record<string, FormatValue>> = {
  ORIG: originalPath,
  PATH: currentPath,
  ORIG_OR_PATH: (info, request, response) =>
    originalPath(info, request, response) ?? currentPath(info, request, response),
};

/** `(WQ|NQ:source)` */
const compilePath: OperatorCompiler = (argument = "", { redactedParameters }) => {
  const [query = "", source = ""] = argument.split(":");
  const read = pathSources[source === "" ? "ORIG_OR_PATH" : source];
  if (!["", "WQ", "NQ"].includes(query)) return oneOf(query, "PATH", ["WQ", "NQ"]);
  if (read === undefined) return oneOf(source, "PATH", ["ORIG", "PATH", "ORIG_OR_PATH"]);
  if (query === "NQ") return { value: pathWithoutQuery(read), isNumber: false };
  return {
    value: redactedParameters === undefined ? read : withoutSecrets(read, redactedParameters),
    isNumber: false,
  };
};

function queryOf(path: string | undefined): string | undefined {
  const start = path?.indexOf("?") ?? -1;
  return start < 0 ? undefined : path!.slice(start + 1);
}

const compileQueryParameter: OperatorCompiler = (argument, { redactedParameters }) => {
  if (argument === undefined || argument === "") return { error: "needs (NAME)" };
  const value: FormatValue = (_info, request) => {
    const query = queryOf(request?.path);
    if (query === undefined) return undefined;
    const found = new URLSearchParams(query).get(argument);
    if (found === null) return undefined;
    if (redactedParameters !== undefined) return redactParameter(argument, found, redactedParameters);
    // An escaped line feed must not begin another line of a log.
    return withoutControlCharacters(found);
  };
  return { value, isNumber: false };
};

/** `(ORIG|DECODED)`: the query as it came; escapes stay what they are either way. */
const compileQueryParameters: OperatorCompiler = (argument = "", { redactedParameters }) => {
  if (!["", "ORIG", "DECODED"].includes(argument)) return oneOf(argument, "QUERY_PARAMS", ["ORIG", "DECODED"]);
  const value: FormatValue = (_info, request) => {
    const whole = queryOf(request?.path);
    if (whole === undefined) return undefined;
    const query = redactedParameters === undefined ? whole : redactText(whole, redactedParameters);
    return query;
  };
  return { value, isNumber: false };
};

const serverName: FormatValue = (info) => ofOptional(withoutControlCharacters(info.requestedServerName));
const originalHost = requestHeaderValue("x-envoy-original-host");
const hostSources: Readonly<Record<string, FormatValue>> = {
  ORIG: originalHost,
  HOST: authorityOf,
  ORIG_OR_HOST: (info, request, response) =>
    originalHost(info, request, response) ?? authorityOf(info, request, response),
};

/** `(SNI_ONLY|SNI_FIRST|HOST_FIRST:source)` */
const compileServerName: OperatorCompiler = (argument = "") => {
  const [order = "", source = ""] = argument.split(":");
  const host = hostSources[source === "" ? "ORIG_OR_HOST" : source];
  if (host === undefined) return oneOf(source, "REQUESTED_SERVER_NAME", ["ORIG_OR_HOST", "HOST", "ORIG"]);
  const either =
    (first: FormatValue, second: FormatValue): FormatValue =>
    (info, request, response) =>
      first(info, request, response) ?? second(info, request, response);
  if (order === "" || order === "SNI_ONLY") return { value: serverName, isNumber: false };
  if (order === "SNI_FIRST") return { value: either(serverName, host), isNumber: false };
  if (order === "HOST_FIRST") return { value: either(host, serverName), isNumber: false };
  return oneOf(order, "REQUESTED_SERVER_NAME", ["SNI_ONLY", "SNI_FIRST", "HOST_FIRST"]);
};

export const requestOperators: Readonly<Record<string, OperatorCompiler>> = {
  REQ: headerOperator(requestHeaderValue),
  // What is kept of the request for those who know no request: the same.
  STREAM_INFO_REQ: headerOperator(requestHeaderValue),
  RESP: headerOperator(responseHeaderValue),
  REQUEST_HEADER: headerOperator(requestHeaderValue),
  RESPONSE_HEADER: headerOperator(responseHeaderValue),
  TRAILER: headerOperator(responseTrailerValue),
  RESPONSE_TRAILER: headerOperator(responseTrailerValue),
  REQ_WITHOUT_QUERY: compileWithoutQuery,
  PATH: compilePath,
  QUERY_PARAM: compileQueryParameter,
  QUERY_PARAMS: compileQueryParameters,
  REQUESTED_SERVER_NAME: compileServerName,
  // A request's id, where it has one; of a connection that is passed on, one that is made up.
  STREAM_ID: text(({ isConnection, isWithoutId }, request) => {
    if (!isConnection) return request?.headers.get("x-request-id");
    return isWithoutId ? undefined : randomUUID();
  }),
  REQUEST_HEADERS_BYTES: number((_info, request) => String(request === undefined ? 0 : requestHeadersBytes(request))),
  RESPONSE_HEADERS_BYTES: number((_info, _request, response) =>
    String(response === undefined ? 0 : responseHeadersBytes(response)),
  ),
  RESPONSE_TRAILERS_BYTES: number(({ responseTrailers }) => String(headersBytes(responseTrailers))),
};
