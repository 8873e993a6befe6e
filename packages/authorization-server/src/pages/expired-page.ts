// What a browser sees whose interaction is over, too old, or another browser's.
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { messagePage } from "./message-page.ts";
import { speechFor } from "./speech.ts";
import type { ServerContext } from "../server-context.ts";

export function expiredPage(server: ServerContext, request: EndpointRequest): Answer {
  const speech = speechFor(server, request);
  const { expiredTitle, expired } = speech.texts.error;
  return messagePage(server, speech, { status: 400, title: expiredTitle, text: expired, way: "account" });
}
