/**
 * Format strings of Envoy's (docs: access_log/usage, "Command operators"), as far as they have to be known before a
 * proxy sees them: a proxy refuses a listener as a whole for one operator that it does not know.
 */
import { addressHeaders, credentialHeaders } from "@tulle/telemetry";
import { nearestName } from "../findings/nearest-name.ts";
import type { Format } from "../schema/formats.ts";

/** What stands between the parentheses. */
type Inputs = "needed" | "possible" | "none";

const words = (text: string): readonly string[] => text.trim().split(/\s+/);

const addressParts = (side: string): readonly string[] =>
  ["ADDRESS", "ADDRESS_WITHOUT_PORT", "PORT"].map((part) => `${side}_${part}`);
const byteCounts = (side: string): readonly string[] =>
  ["WIRE_BYTES", "HEADER_BYTES", "DECOMPRESSED_HEADER_BYTES"].flatMap((what) => [
    `${side}_${what}_SENT`,
    `${side}_${what}_RECEIVED`,
  ]);

const operators: ReadonlyMap<string, Inputs> = new Map<string, Inputs>([
  ...words(
    `REQ STREAM_INFO_REQ RESP TRAILER REQUEST_HEADER RESPONSE_HEADER RESPONSE_TRAILER REQ_WITHOUT_QUERY QUERY_PARAM DYNAMIC_METADATA
    CLUSTER_METADATA UPSTREAM_METADATA METADATA FILTER_STATE UPSTREAM_FILTER_STATE ENVIRONMENT COMMON_DURATION CEL
    TYPED_CEL COALESCE`,
  ).map((name) => [name, "needed"] as const),
  ...words(
    `START_TIME START_TIME_LOCAL EMIT_TIME EMIT_TIME_LOCAL GRPC_STATUS PATH QUERY_PARAMS DOWNSTREAM_PEER_CERT_V_START
    DOWNSTREAM_PEER_CERT_V_END UPSTREAM_PEER_CERT_V_START UPSTREAM_PEER_CERT_V_END`,
  ).map((name) => [name, "possible"] as const),
  ...[
    ...words(
      `PROTOCOL RESPONSE_CODE RESPONSE_CODE_DETAILS RESPONSE_FLAGS RESPONSE_FLAGS_LONG CONNECTION_TERMINATION_DETAILS
      REQUEST_HEADERS_BYTES RESPONSE_HEADERS_BYTES RESPONSE_TRAILERS_BYTES BYTES_RETRANSMITTED PACKETS_RETRANSMITTED
      TLS_JA4_FINGERPRINT CUSTOM_FLAGS BYTES_RECEIVED BYTES_SENT DURATION REQUEST_DURATION REQUEST_TX_DURATION RESPONSE_DURATION RESPONSE_TX_DURATION
      DOWNSTREAM_HANDSHAKE_DURATION ROUNDTRIP_DURATION UPSTREAM_CONNECTION_POOL_READY_DURATION ROUTE_NAME ROUTE_RESOLUTION_COUNT
      ROUTE_RESOLUTION_TIME_US HOSTNAME
      UNIQUE_ID REQUESTED_SERVER_NAME CONNECTION_ID STREAM_ID TRACE_ID SPAN_ID GRPC_STATUS_NUMBER LOCAL_REPLY_BODY
      VIRTUAL_CLUSTER_NAME ACCESS_LOG_TYPE LISTENER_NAME FILTER_CHAIN_NAME TLS_JA3_FINGERPRINT UPSTREAM_HOST UPSTREAM_HOST_NAME
      UPSTREAM_HOST_NAME_WITHOUT_PORT UPSTREAM_CLUSTER UPSTREAM_CLUSTER_RAW UPSTREAM_PROTOCOL UPSTREAM_CONNECTION_ID
      UPSTREAM_TRANSPORT_FAILURE_REASON UPSTREAM_REQUEST_ATTEMPT_COUNT DOWNSTREAM_TRANSPORT_FAILURE_REASON`,
    ),
    ...["DOWNSTREAM_REMOTE", "DOWNSTREAM_DIRECT_REMOTE", "DOWNSTREAM_LOCAL", "DOWNSTREAM_DIRECT_LOCAL"].flatMap(
      addressParts,
    ),
    ...["UPSTREAM_REMOTE", "UPSTREAM_LOCAL"].flatMap(addressParts),
    ...["UPSTREAM", "DOWNSTREAM"].flatMap(byteCounts),
    ...["UPSTREAM", "DOWNSTREAM"].flatMap((side) =>
      words(
        `TLS_CIPHER TLS_VERSION TLS_SESSION_ID PEER_SUBJECT PEER_ISSUER PEER_CERT PEER_URI_SAN PEER_DNS_SAN PEER_IP_SAN
        LOCAL_URI_SAN LOCAL_DNS_SAN LOCAL_IP_SAN TLS_GROUP LOCAL_CLOSE_REASON DETECTED_CLOSE_TYPE`,
      ).map((what) => `${side}_${what}`),
    ),
    ...words(
      `PEER_EMAIL_SAN PEER_OTHERNAME_SAN PEER_SERIAL PEER_FINGERPRINT_256 PEER_FINGERPRINT_1 PEER_CHAIN_FINGERPRINTS_256
      PEER_CHAIN_FINGERPRINTS_1 PEER_CHAIN_SERIALS PEER_ISSUER_FINGERPRINT_256 PEER_ISSUER_SERIAL LOCAL_EMAIL_SAN
      LOCAL_OTHERNAME_SAN LOCAL_SUBJECT CX_RTT LOCAL_ADDRESS_ENDPOINT_ID DIRECT_LOCAL_ADDRESS_ENDPOINT_ID`,
    ).map((what) => `DOWNSTREAM_${what}`),
    ...words(
      `HOSTS_ATTEMPTED HOSTS_ATTEMPTED_WITHOUT_PORT HOST_NAMES_ATTEMPTED HOST_NAMES_ATTEMPTED_WITHOUT_PORT
      CONNECTION_IDS_ATTEMPTED SERVER_NAME REMOTE_ADDRESS_ENDPOINT_ID`,
    ).map((what) => `UPSTREAM_${what}`),
  ].map((name) => [name, "none"] as const),
]);

/** What reads a request's metadata in its own words may hold parentheses (CEL). */
const operator = /%(?:%|([A-Z][A-Z0-9_]*)(\(((?:[^()]|\([^()]*\))*)\))?(?::(\d+))?%)/y;

export interface FormatOperator {
  readonly name: string;
  readonly inputs: string | undefined;
  readonly length: string | undefined;
}

/** What `replace` makes of each operator; undefined leaves it as it is. The text is one that `formatProblem` takes. */
export function mapOperators(text: string, replace: (operator: FormatOperator) => string | undefined): string {
  return text.replace(new RegExp(operator.source, "g"), (all: string, ...groups: (string | undefined)[]) => {
    const [name, , inputs, length] = groups;
    return name === undefined ? all : (replace({ name, inputs, length }) ?? all);
  });
}

/** What is wrong with a format string; undefined when a proxy can take it. */
export function formatProblem(text: string): string | undefined {
  for (let at = text.indexOf("%"); at !== -1; at = text.indexOf("%", at)) {
    operator.lastIndex = at;
    const found = operator.exec(text);
    if (found === null) return `there is no operator at position ${at}: it is written %OPERATOR%, and % itself %%`;
    at = operator.lastIndex;
    const [, name, inputs, within] = found;
    if (name === undefined) continue;
    const takes = operators.get(name);
    if (takes === undefined) {
      const nearest = nearestName(name, [...operators.keys()]);
      return `%${name}% is no operator${nearest === undefined ? "" : `; did you mean %${nearest}%?`}`;
    }
    if (takes === "needed" && (within ?? "") === "") return `%${name}% needs a name in parentheses`;
    if (takes === "none" && inputs !== undefined) return `%${name}% takes nothing in parentheses`;
    const problem = name === "COALESCE" ? coalesceProblem(within!) : undefined;
    if (problem !== undefined) return `%COALESCE% ${problem}`;
  }
  return undefined;
}

/** One of the operators that COALESCE tries, one after the other. */
type Coalesced = string | { readonly command: string; readonly param?: string };

function coalescedOf(inputs: string): readonly Coalesced[] | undefined {
  try {
    const { operators: list } = JSON.parse(inputs) as { readonly operators?: unknown };
    if (!Array.isArray(list) || list.length === 0) return undefined;
    const isOne = (each: unknown): each is Coalesced =>
      typeof each === "string" || typeof (each as { readonly command?: unknown } | null)?.command === "string";
    return list.every(isOne) ? list : undefined;
  } catch {
    return undefined;
  }
}

function textOf(each: Coalesced): string {
  const { command, param } = typeof each === "string" ? { command: each, param: undefined } : each;
  return `%${command}${param === undefined ? "" : `(${param})`}%`;
}

function coalesceProblem(inputs: string): string | undefined {
  const list = coalescedOf(inputs);
  if (list === undefined) return 'is written with {"operators": ["NAME", {"command": "NAME", "param": "…"}]}';
  const texts = list.map(textOf);
  // That one is a formatter of access logs, which Envoy does not look for here.
  if (texts.some((text) => text.startsWith("%REQ_WITHOUT_QUERY("))) return "cannot hold %REQ_WITHOUT_QUERY%";
  const problem = texts.map(formatProblem).find((each) => each !== undefined);
  return problem === undefined ? undefined : `holds what is none: ${problem}`;
}

export const logFormat: Format = {
  name: "format",
  description: "text with Envoy's command operators, such as %RESPONSE_CODE%",
  check: formatProblem,
};

const withQuery: ReadonlySet<string> = new Set(addressHeaders);
const credentials: ReadonlySet<string> = new Set(credentialHeaders);
const requestHeaders = new Set(["REQ", "REQUEST_HEADER", "STREAM_INFO_REQ", "REQ_WITHOUT_QUERY"]);
const responseHeaders = new Set(["RESP", "RESPONSE_HEADER", "TRAILER", "RESPONSE_TRAILER"]);
/** What of CEL's attributes has a query in it; headers under their names, or all of them at once. */
const celWithQuery = /\brequest\s*\.\s*(?:path|query|referer)\b|\bheaders\b(?!\s*(?:\[\s*["']|\.))/;

/**
 * The format without credentials, and with queries only by `REQ_WITHOUT_QUERY`, which Tulle's proxy writes out with the
 * values of `parameters` (in lower case) left out, and Envoy without the query. Where that operator cannot stand, the
 * query goes as a whole; what Tulle's proxy can redact by itself, answers' addresses and CEL, it is left with
 * (`isTulle`).
 */
export function withoutSecretQueries(text: string, parameters: readonly string[], isTulle = false): string {
  if (parameters.length === 0) return text;
  const within = ({ length }: FormatOperator): string => (length === undefined ? "" : `:${length}`);
  return mapOperators(text, (each) => {
    const { name, inputs = "" } = each;
    const headers = inputs.split("?").map((header) => header.trim().toLowerCase());
    const isAsked = (wanted: ReadonlySet<string>): boolean => headers.some((header) => wanted.has(header));
    if (requestHeaders.has(name)) {
      if (isAsked(credentials)) return redactedText;
      return isAsked(withQuery) ? `%REQ_WITHOUT_QUERY(${inputs})${within(each)}%` : undefined;
    }
    if (responseHeaders.has(name)) {
      return isAsked(credentials) || (!isTulle && isAsked(withQuery)) ? redactedText : undefined;
    }
    if (name === "CEL" || name === "TYPED_CEL") return isTulle || !mayTellSecrets(inputs) ? undefined : redactedText;
    if (name === "PATH" && !inputs.startsWith("NQ")) {
      const header = { ORIG: "X-ENVOY-ORIGINAL-PATH", PATH: ":PATH" }[inputs.split(":")[1] ?? ""];
      return `%REQ_WITHOUT_QUERY(${header ?? "X-ENVOY-ORIGINAL-PATH?:PATH"})${within(each)}%`;
    }
    if (name === "COALESCE") return withoutSecretChoices(inputs, within(each), parameters, isTulle);
    return name === "QUERY_PARAMS" || (name === "QUERY_PARAM" && parameters.includes(inputs.toLowerCase()))
      ? redactedText
      : undefined;
  });
}

/** The same for tags of spans, where `REQ_WITHOUT_QUERY` cannot stand. */
export function withoutSecretTags(text: string, parameters: readonly string[]): string {
  return mapOperators(withoutSecretQueries(text, parameters), ({ name, inputs = "", length }) => {
    if (name !== "REQ_WITHOUT_QUERY") return undefined;
    const source = pathSources[inputs.replaceAll(" ", "").toLowerCase()];
    return source === undefined ? redactedText : `%PATH(NQ:${source})${length === undefined ? "" : `:${length}`}%`;
  });
}

const pathSources: Readonly<Record<string, string>> = {
  ":path": "PATH",
  "x-envoy-original-path": "ORIG",
  "x-envoy-original-path?:path": "ORIG_OR_PATH",
};

function mayTellSecrets(expression: string): boolean {
  const names = expression.toLowerCase().match(/:?[a-z0-9_-]+/g) ?? [];
  return celWithQuery.test(expression) || names.some((word) => withQuery.has(word) || credentials.has(word));
}

const redactedText = "redacted";

function withoutSecretChoices(
  inputs: string,
  length: string,
  parameters: readonly string[],
  isTulle: boolean,
): string | undefined {
  const list = coalescedOf(inputs) ?? [];
  const kept = list.filter((each) => withoutSecretQueries(textOf(each), parameters, isTulle) === textOf(each));
  if (kept.length === list.length) return undefined;
  return kept.length === 0 ? redactedText : `%COALESCE(${JSON.stringify({ operators: kept })})${length}%`;
}
