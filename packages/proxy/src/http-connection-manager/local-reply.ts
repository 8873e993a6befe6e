// An answer that the proxy gives itself, on its way out: what rules for local replies may still change (Envoy:
// `LocalReply`).
import type { LocalReply } from "../http/filter.ts";
import { grpcStatusOfHttp, isGrpc } from "../http/grpc-status.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { ResponseHead } from "../http/message.ts";
import { percentEncoded } from "../http/percent-encoded.ts";
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
  { status, headers: own, body, grpcStatus }: LocalReply,
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
  // For gRPC-Web its filter makes a status of the body (Envoy).
  if (info.request !== undefined && !info.isGrpcWeb && isGrpc(info.request.headers))
    return trailersOnly(reply, info.request.method, grpcStatus);
  if (reply.body.length > 0) {
    headers.set("content-length", String(reply.body.length));
    if (reply.contentType !== undefined) headers.set("content-type", reply.contentType);
    else if (!headers.has("content-type")) headers.set("content-type", "text/plain");
  }
  return reply;
}

/** What a gRPC client takes for an answer: a head alone, with the status of the call. */
function trailersOnly(
  { head, body, contentType }: PendingLocalReply,
  method: string,
  told: number | undefined,
): PendingLocalReply {
  const { headers } = head;
  // The line end of JSON is none of its words.
  const words = contentType === "application/json" && body.at(-1) === 0x0a ? body.subarray(0, -1) : body;
  headers.set("content-type", "application/grpc");
  headers.set("grpc-status", String(told ?? grpcStatusOfHttp(head.status)));
  if (words.length > 0 && method !== "HEAD") headers.set("grpc-message", percentEncoded(words));
  headers.remove("content-length");
  return { head: { ...head, status: 200 }, body: noBytes, contentType: undefined };
}

const noBytes: Buffer = Buffer.alloc(0);
