// Pages that only say something: errors, and the end of a sign-out.
import type { Answer } from "../http/messages.ts";
import type { Refusal } from "../protocol/refusal.ts";
import { printableDescription } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";
import { html } from "./html.ts";
import { pageAnswer, textsFor } from "./page.ts";

export interface Message {
  readonly status: number;
  readonly title: string;
  readonly text: string;
  readonly errorId?: string;
  readonly retryAfterSeconds?: number;
}

export function messagePage(server: ServerContext, message: Message): Answer {
  const texts = textsFor(server).error;
  return pageAnswer(server, {
    title: message.title,
    status: message.status,
    headers: message.retryAfterSeconds === undefined ? {} : { "retry-after": String(message.retryAfterSeconds) },
    content: html`<h1>${message.title}</h1>
      <p>${message.text}</p>
      ${message.errorId === undefined ? undefined : html`<p class="soft">${texts.id} <code>${message.errorId}</code></p>`}`,
  });
}

/** A refusal that must not be redirected. */
export function refusalPage(server: ServerContext, refusal: Refusal, errorId: string): Answer {
  const texts = textsFor(server).error;
  return pageAnswer(server, {
    title: texts.title,
    status: 400,
    content: html`<h1>${texts.title}</h1>
      <p>${texts.intro}</p>
      <details open>
        <summary>${texts.forDevelopers}</summary>
        <dl>
          <dt>error</dt>
          <dd><code>${refusal.error}</code></dd>
          <dt>error_description</dt>
          <dd>${printableDescription(refusal.description)}</dd>
          <dt>${texts.id}</dt>
          <dd><code>${errorId}</code></dd>
        </dl>
      </details>`,
  });
}
