// What becomes of answers that the proxy gives itself before they leave (LocalReplyConfig of the HTTP connection
// manager): the first mapper whose filter holds may change status, headers and body, and a format may put the body into
// words of its own.
import type { SubstitutionFormatString } from "@tulle/xds/envoy/config/core/v3/substitution_format_string_pb";
import type {
  LocalReplyConfig,
  ResponseMapper,
} from "@tulle/xds/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb";
import type { TextFormat } from "../format/substitution-format.ts";
import { HeaderMap } from "../http/header-map.ts";
import { textOfBytes } from "../http/header-value.ts";
import type { LocalReplyRewrite } from "./local-reply.ts";
import type { RequestHead, ResponseHead } from "../http/message.ts";
import { checkHeaderText } from "../fields/check-header-text.ts";
import { type HeaderChange, compileHeaderChanges } from "../fields/compile-header-changes.ts";
import { compileFormatString } from "../fields/compile-format-string.ts";
import { type LogCondition, compileLogCondition } from "../fields/compile-log-condition.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { readDataSource } from "../fields/read-data-source.ts";

interface BodyFormat {
  readonly format: TextFormat;
  readonly contentType: string;
}

interface Mapper {
  readonly holds: LogCondition;
  readonly status: number | undefined;
  readonly body: Buffer | undefined;
  readonly bodyFormat: BodyFormat | undefined;
  readonly changeHeaders: HeaderChange | undefined;
}

/** Undefined when nothing is ever changed. */
export function compileLocalReplies(
  message: LocalReplyConfig | undefined,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): LocalReplyRewrite | undefined {
  if (message === undefined) return undefined;
  const general =
    message.bodyFormat && compileBodyFormat(message.bodyFormat, scope, place.field("body_format"), problems);
  const mappers = message.mappers.map((mapper, index) =>
    compileMapper(mapper, scope, place.field("mappers", index), problems),
  );
  if (mappers.length === 0 && general === undefined) return undefined;
  return (reply, info) => {
    // Filters and formats look at the status that the answer has so far.
    info.responseCode = reply.head.status;
    const mapper = mappers.find(({ holds }) => holds(info, reply.head));
    if (mapper?.body !== undefined) reply.body = mapper.body;
    mapper?.changeHeaders?.(reply.head.headers, info, info.request, reply.head);
    if (mapper?.status !== undefined) reply.head.status = info.responseCode = mapper.status;
    const bodyFormat = mapper?.bodyFormat ?? general;
    if (bodyFormat === undefined) return;
    info.localReplyBody = reply.body.toString();
    const request = info.request && withText(info.request);
    reply.body = Buffer.from(bodyFormat.format(info, request, withText(reply.head)));
    info.localReplyBody = undefined;
    reply.contentType = bodyFormat.contentType;
  };
}

/** Bodies are UTF-8 all through; heads have a character for each byte. */
function withText<H extends RequestHead | ResponseHead>(head: H): H {
  return { ...head, headers: new HeaderMap(head.headers.entries.map(textOfBytes)) };
}

function compileMapper(mapper: ResponseMapper, scope: CompileScope, place: Place, problems: Problems): Mapper {
  const { filter, statusCode, body, bodyFormatOverride, headersToAdd } = mapper;
  if (filter === undefined) problems.error(place.field("filter"), "is required");
  if (statusCode !== undefined && (statusCode < 200 || statusCode >= 600)) {
    problems.error(place.field("status_code"), "value must be inside range [200, 600)");
  }
  const changes = { add: headersToAdd, remove: [] };
  return {
    holds: filter === undefined ? () => false : compileLogCondition(filter, scope, place.field("filter"), problems),
    status: statusCode,
    body: readDataSource(body, scope.environment, place.field("body"), problems)?.bytes,
    bodyFormat:
      bodyFormatOverride && compileBodyFormat(bodyFormatOverride, scope, place.field("body_format_override"), problems),
    changeHeaders: compileHeaderChanges(changes, "response_headers", scope, place.field("headers_to_add"), problems),
  };
}

function compileBodyFormat(
  message: SubstitutionFormatString,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): BodyFormat {
  const ownType = message.format.case === "jsonFormat" ? "application/json" : "text/plain";
  const contentType = checkHeaderText(message.contentType, place.field("content_type"), problems);
  return {
    format: compileFormatString(message, scope, place, problems),
    contentType: contentType === "" ? ownType : contentType,
  };
}
