// What the connection manager does to the headers of every response after filters have seen it
// (Envoy: `ConnectionManagerUtility::mutateResponseHeaders` and what `ActiveStream::encodeHeaders` adds).
import type { Clock } from "../worker/clock.ts";
import type { HttpConnectionManagerConfig } from "./http-connection-manager-config.ts";
import { dateHeader } from "./date-header.ts";
import type { RequestHead, ResponseHead } from "../http/message.ts";

/** One pass over the list, as headers are few and look-ups would each walk it. */
export function mutateResponseHeaders(
  response: ResponseHead,
  request: RequestHead,
  config: HttpConnectionManagerConfig,
  clock: Clock,
): void {
  const entries = response.headers.entries;
  let hasServer = config.serverHeaderTransformation === "pass_through";
  let hasDate = false;
  for (let index = 0; index < entries.length; index += 2) {
    const name = entries[index]!;
    if (name === "date") hasDate = true;
    else if (name === "server" && !hasServer) {
      hasServer = true;
      if (config.serverHeaderTransformation === "overwrite") entries[index + 1] = config.serverName;
    }
  }
  if (!hasDate) entries.push("date", dateHeader(clock.wallMs()));
  if (!hasServer) entries.push("server", config.serverName);
  if (config.via !== "") response.headers.append("via", config.via);
  if (config.alwaysSetRequestIdInResponse) {
    const requestId = request.headers.get("x-request-id");
    if (requestId !== undefined) response.headers.set("x-request-id", requestId);
  }
}
