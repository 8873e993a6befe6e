// What a browser sees whose interaction is over, too old, or another browser's.
import type { Answer } from "../http/messages.ts";
import { messagePage } from "../pages/message-page.ts";
import { textsFor } from "../pages/page.ts";
import type { ServerContext } from "../server-context.ts";

export function expiredPage(server: ServerContext): Answer {
  const texts = textsFor(server).error;
  return messagePage(server, { status: 400, title: texts.expiredTitle, text: texts.expired });
}
