// Every operator with the arguments that parity tables ask for, and what is to be equal of its values.
import { operators } from "../format/operators.ts";

/** Arguments for those that need or take some; the others are asked for without. */
const args: Readonly<Record<string, readonly string[]>> = {
  REQ: ["(:PATH)", "(X-NONE?X-A)", "(X-A):2"],
  STREAM_INFO_REQ: ["(:PATH)", "(X-NONE?X-A)"],
  RESP: ["(X-B)", "(:STATUS)"],
  REQUEST_HEADER: ["(X-A)"],
  RESPONSE_HEADER: ["(X-NONE)"],
  TRAILER: ["(X-T)"],
  RESPONSE_TRAILER: ["(X-T)"],
  REQ_WITHOUT_QUERY: ["(:PATH)"],
  PATH: ["", "(WQ)", "(NQ)", "(NQ:PATH)", "(WQ:ORIG)", "(NQ:ORIG_OR_PATH):3"],
  QUERY_PARAM: ["(a)", "(none)"],
  QUERY_PARAMS: ["", "(ORIG)", "(DECODED)"],
  REQUESTED_SERVER_NAME: ["", "(SNI_ONLY)", "(SNI_FIRST)", "(HOST_FIRST:HOST)", "(SNI_FIRST:ORIG)"],
  START_TIME: ["", "(%Y/%m/%d %H:%M:%S.%3f)"],
  START_TIME_LOCAL: ["", "(%H:%M %z)"],
  EMIT_TIME: ["", "(%s)"],
  EMIT_TIME_LOCAL: ["", "(%F)"],
  COMMON_DURATION: [
    ...["DS_RX_BEG:DS_RX_END", "DS_RX_BEG:US_CX_BEG", "US_CX_BEG:US_CX_END:us", "US_TX_BEG:US_TX_END:ns"].map(
      (each) => `(${each})`,
    ),
    ...["US_CX_END:US_HS_END"].map((each) => `(${each})`),
    ...["US_RX_BEG:US_RX_END", "US_RX_BEG:US_RX_BODY_BEG:us", "DS_TX_BEG:DS_TX_END", "a:b"].map((each) => `(${each})`),
  ],
  RESPONSE_CODE_DETAILS: ["", "(ALLOW_WHITESPACES)"],
  GRPC_STATUS: ["", "(NUMBER)"],
  ENVIRONMENT: ["(NONE)"],
  DYNAMIC_METADATA: ["(none:key)"],
  CLUSTER_METADATA: ["(of:cluster)", "(of)"],
  UPSTREAM_METADATA: ["(of:host)"],
  METADATA: [
    ...["VIRTUAL_HOST:tulle:revision", "VIRTUAL_HOST:of", "ROUTE:of:number", "ROUTE:of:list", "ROUTE:of"].map(
      (each) => `(${each})`,
    ),
    ...["CLUSTER:of:cluster", "UPSTREAM_HOST:of:host", "LISTENER:of:listener"].map((each) => `(${each})`),
    ...["LISTENER_FILTER_CHAIN:of:chain", "DYNAMIC:a:b"].map((each) => `(${each})`),
  ],
  FILTER_STATE: ["(none)"],
  UPSTREAM_FILTER_STATE: ["(none:PLAIN)"],
  CEL: ["(request.path)", "(response.code)", "(request.url_path.contains('/a'))", "(request.headers['x-a']):1"],
  TYPED_CEL: ["(response.code)", "(request.method == 'GET')"],
  COALESCE: [
    '({"operators":["REQUESTED_SERVER_NAME",{"command":"REQ","param":":authority"}]})',
    '({"operators":[{"command":"REQ","param":"x-a","max_length":2}]})',
  ],
  DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: ["", "(8)"],
  UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: ["", "(31)"],
  DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT: ["", "(0)", "(33)"],
};

/** Compared by shape alone: digits and letters are one another's. */
const byShape = new Set(
  `START_TIME START_TIME_LOCAL EMIT_TIME EMIT_TIME_LOCAL DURATION COMMON_DURATION REQUEST_DURATION REQUEST_TX_DURATION
  RESPONSE_DURATION RESPONSE_TX_DURATION ROUTE_RESOLUTION_TIME_US UNIQUE_ID STREAM_ID CONNECTION_ID UPSTREAM_CONNECTION_ID
  UPSTREAM_CONNECTION_IDS_ATTEMPTED UPSTREAM_CONNECTION_POOL_READY_DURATION DOWNSTREAM_HANDSHAKE_DURATION UPSTREAM_LOCAL_ADDRESS UPSTREAM_LOCAL_PORT
  DOWNSTREAM_REMOTE_ADDRESS DOWNSTREAM_REMOTE_PORT DOWNSTREAM_DIRECT_REMOTE_ADDRESS DOWNSTREAM_DIRECT_REMOTE_PORT
  DOWNSTREAM_LOCAL_ADDRESS DOWNSTREAM_LOCAL_PORT DOWNSTREAM_DIRECT_LOCAL_ADDRESS DOWNSTREAM_DIRECT_LOCAL_PORT
  REQUEST_HEADERS_BYTES RESPONSE_HEADERS_BYTES`.split(/\s+/),
);

export const operatorCommands = Object.keys(operators).flatMap((name) =>
  (args[name] ?? [""]).map((argument) => ({ name, text: `%${name}${argument}%` })),
);
/** What is to be equal of a value. */
export function comparableValue(name: string, value: unknown): unknown {
  if (!byShape.has(name) || value === null || value === undefined) return value;
  if (typeof value === "number") return "a number";
  return JSON.stringify(value).replace(/[0-9a-f]+/g, "9");
}
