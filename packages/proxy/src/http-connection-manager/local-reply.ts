// An answer that the proxy gives itself, on its way out: what rules for local replies may still change (Envoy:
// `LocalReply`).
import type { LocalReply } from "../http/filter.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { ResponseHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";

export interface PendingLocalReply {
  readonly head: ResponseHead;
  body: Buffer;
  /** Of a body that was put into a format. */
  contentType: string | undefined;
}

/** Changes the answer in place. */
export type LocalReplyRewrite = (reply: PendingLocalReply, info: StreamInfo) => void;

/** `rewrite` undefined = answers go out as they are. */
export function prepareLocalReply(
  { status, headers: own, body }: LocalReply,
  rewrite: LocalReplyRewrite | undefined,
  info: StreamInfo,
): PendingLocalReply {
  const headers = own?.clone() ?? new HeaderMap();
  const reply: PendingLocalReply = {
    head: { status, headers, upgrade: undefined },
    body: typeof body === "string" ? Buffer.from(body) : body,
    contentType: undefined,
  };
  rewrite?.(reply, info);
  if (reply.body.length > 0) {
    headers.set("content-length", String(reply.body.length));
    if (reply.contentType !== undefined) headers.set("content-type", reply.contentType);
    else if (!headers.has("content-type")) headers.set("content-type", "text/plain");
  }
  return reply;
}
