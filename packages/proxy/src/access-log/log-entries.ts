// What an access log service is told of a request and of a connection (envoy.data.accesslog.v3: HTTPAccessLogEntry,
// TCPAccessLogEntry), as items of a StreamAccessLogsMessage.
import type { ProtobufWriter } from "@tulle/telemetry";
import { isCredential, redactedValue, redactQuery } from "../format/redact-query.ts";
import { mayHoldQuery, requestPseudoHeaders } from "../format/request-operators.ts";
import { requestHeadersBytes, responseHeadersBytes } from "../http/headers-bytes.ts";
import type { Protocol } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import { writeCommonProperties, writeText, writeUint, writeWrapped } from "./common-log-properties.ts";
import { utf8Text } from "./utf8-text.ts";

/** HTTPVersion. */
const versions: Readonly<Record<Protocol, number>> = { "HTTP/1.0": 1, "HTTP/1.1": 2, "HTTP/2": 3 };
/** RequestMethod of core.v3. */
const methods = "METHOD_UNSPECIFIED GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH".split(" ");

export interface RequestEntryParts {
  /** Names in lower case. */
  readonly requestHeaders: readonly string[];
  readonly responseHeaders: readonly string[];
  readonly responseTrailers: readonly string[];
  readonly filterStateObjects: readonly string[];
  /** Parameters whose values are left out of paths and addresses, as are credentials; undefined = none. */
  readonly redactedParameters: ReadonlySet<string> | undefined;
}

/** The field of both HTTPAccessLogEntries and TCPAccessLogEntries that holds entries. */
const entryField = 1;

export function writeRequestEntry(writer: ProtobufWriter, info: StreamInfo, parts: RequestEntryParts): void {
  const start = writer.begin(entryField);
  writeCommonProperties(writer, 1, info, parts.filterStateObjects);
  const protocol = info.request?.protocol ?? info.connectionProtocol;
  if (protocol !== undefined) writer.uint(2, versions[protocol]);
  writeRequest(writer, info, parts);
  writeResponse(writer, info, parts);
  writer.end(start);
}

export function writeConnectionEntry(writer: ProtobufWriter, info: StreamInfo): void {
  const start = writer.begin(entryField);
  writeCommonProperties(writer, 1, info);
  const bytes = writer.begin(2);
  writeUint(writer, 1, info.bytesReceived);
  writeUint(writer, 2, info.bytesSent);
  writer.end(bytes);
  writer.end(start);
}

function writeRequest(writer: ProtobufWriter, info: StreamInfo, parts: RequestEntryParts): void {
  const { request } = info;
  const start = writer.begin(3);
  if (request !== undefined) {
    const { headers } = request;
    const shown = shownIn(parts);
    writeUint(writer, 1, Math.max(0, methods.indexOf(request.method)));
    writeText(writer, 2, request.scheme);
    writeText(writer, 3, request.authority);
    writeText(writer, 5, shown(":path", request.path));
    writeText(writer, 6, headers.get("user-agent"));
    writeText(writer, 7, shown("referer", headers.get("referer")));
    writeText(writer, 8, headers.get("x-forwarded-for"));
    writeText(writer, 9, headers.get("x-request-id"));
    writeText(writer, 10, shown("x-envoy-original-path", headers.get("x-envoy-original-path")));
    writeUint(writer, 11, requestHeadersBytes(request));
    const pseudo = (name: string): string | undefined => requestPseudoHeaders[name]?.(info, request, undefined);
    writeHeaders(writer, 13, parts.requestHeaders, (name) => pseudo(name) ?? headers.getJoined(name), shown);
  }
  writeUint(writer, 12, info.bytesReceived);
  writeUint(writer, 14, info.upstreamBytes.headerBytesSent);
  writeUint(writer, 15, info.downstreamBytes.headerBytesReceived);
  writer.end(start);
}

function writeResponse(writer: ProtobufWriter, info: StreamInfo, parts: RequestEntryParts): void {
  const { response } = info;
  const start = writer.begin(4);
  if (info.responseCode !== 0) writeWrapped(writer, 1, info.responseCode);
  if (response !== undefined) {
    const shown = shownIn(parts);
    writeUint(writer, 2, responseHeadersBytes(response));
    const { status, headers } = response;
    const ofName = (name: string): string | undefined =>
      name === ":status" ? String(status) : headers.getJoined(name);
    writeHeaders(writer, 4, parts.responseHeaders, ofName, shown);
    writeHeaders(writer, 5, parts.responseTrailers, (name) => info.responseTrailers?.getJoined(name), shown);
  }
  writeUint(writer, 3, info.bytesSent);
  writeText(writer, 6, info.responseCodeDetails);
  writeUint(writer, 7, info.upstreamBytes.headerBytesReceived);
  writeUint(writer, 8, info.downstreamBytes.headerBytesSent);
  writer.end(start);
}

type Shown = (name: string, value: string | undefined) => string | undefined;

function shownIn({ redactedParameters }: RequestEntryParts): Shown {
  return (name, value) => {
    if (redactedParameters === undefined || value === undefined) return value;
    if (isCredential(name)) return redactedValue;
    return mayHoldQuery.has(name) ? redactQuery(value, redactedParameters) : value;
  };
}

/** Entries of a map. */
function writeHeaders(
  writer: ProtobufWriter,
  field: number,
  names: readonly string[],
  read: (name: string) => string | undefined,
  shown: Shown,
): void {
  for (const name of names) {
    const value = shown(name, read(name));
    if (value === undefined) continue;
    const entry = writer.begin(field);
    writer.text(1, name);
    writer.text(2, utf8Text(value));
    writer.end(entry);
  }
}
