// What `error_uri` leads to: one page for each error code, for developers.
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import { html } from "./html.ts";
import { messagePage } from "./message-page.ts";
import { pageAnswer, textsFor } from "./page.ts";

export function errorCodePage(server: ServerContext, code: string): Answer {
  const texts = textsFor(server);
  const meaning = Object.hasOwn(texts.errorCodes, code) ? texts.errorCodes[code] : undefined;
  if (meaning === undefined)
    return messagePage(server, { status: 404, title: texts.error.notFoundTitle, text: texts.error.notFound });
  return pageAnswer(server, {
    title: code,
    content: html`<h1>${texts.errorCodeTitle} <code>${code}</code></h1>
      <p>${meaning}</p>`,
  });
}
