// What a proxy at the level `debug` writes of each request and response, secrets of sign-ins left out.
import type { Logger } from "@tulle/telemetry";
import { redactQuery } from "../format/redact-query.ts";
import type { RedactedNames } from "../format/redacted-names.ts";
import type { RequestHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";

export function logRequest(
  log: Logger,
  connection: number,
  head: RequestHead,
  endStream: boolean,
  redactedNames: RedactedNames,
): void {
  const { authority, method } = head;
  const path = redactQuery(head.path, redactedNames);
  log.debug("request headers complete", { connection, method, authority, path, endStream });
}

export function logResponse(log: Logger, connection: number, info: StreamInfo, endStream: boolean): void {
  const { responseCode: status, responseCodeDetails: details } = info;
  log.debug("encoding headers", { connection, status, details, endStream });
}
