// What `error_uri` leads to: one page for each error code, for developers.
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import { html } from "./html.ts";
import { messagePage, wayOn } from "./message-page.ts";
import { pageAnswer } from "./page.ts";
import type { Speech } from "./speech.ts";
import { fill, fillText } from "./speech.ts";

export function errorCodePage(server: ServerContext, speech: Speech, code: string): Answer {
  const { error, errorCodes, errorCodeTitle } = speech.texts;
  const meaning = Object.entries(errorCodes).find(([name]) => name === code)?.[1];
  if (meaning === undefined)
    return messagePage(server, speech, { status: 404, title: error.notFoundTitle, text: error.notFound, way: "home" });
  return pageAnswer(server, speech, {
    title: fillText(errorCodeTitle, { code }),
    content: html`<h1>${fill(errorCodeTitle, { code: html`<code>${code}</code>` })}</h1>
      <p>${meaning}</p>
      ${wayOn(server, speech, "account")}`,
  });
}
