// Pages that only say something: errors, and the end of a sign-out.
import type { Answer } from "../http/messages.ts";
import type { Refusal } from "../protocol/refusal.ts";
import { printableDescription } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import { pageAnswer } from "./page.ts";
import type { Speech } from "./speech.ts";
import { fill, inSameLanguage } from "./speech.ts";
import type { Texts } from "./texts.ts";

export interface Message {
  readonly status: number;
  readonly title: string;
  readonly text: string;
  /** What can be done now. */
  readonly way: Way | Elsewhere;
  readonly errorId?: string;
  readonly retryAfterSeconds?: number;
}

/** `again` is the address itself, which must be one that can be asked for once more. */
export type Way = Exclude<keyof Texts["ways"], "elsewhere">;

/** Where an application has its pages. */
export interface Elsewhere {
  readonly origin: string;
}

const wayPaths: Readonly<Record<Exclude<Way, "again">, string>> = { account: "/account", home: "", signIn: "/sign-in" };

export function wayOn(server: ServerContext, speech: Speech, way: Way | Elsewhere): Html {
  if (typeof way === "object") {
    const words = fill(speech.texts.ways.elsewhere, { place: new URL(way.origin).host });
    return html`<a class="button full" href="${way.origin}">${words}</a>`;
  }
  const address = way === "again" ? "" : inSameLanguage(server.config.issuer + wayPaths[way], speech);
  return html`<a class="button full" href="${address}">${speech.texts.ways[way]}</a>`;
}

export function messagePage(server: ServerContext, speech: Speech, message: Message): Answer {
  return pageAnswer(server, speech, {
    title: message.title,
    status: message.status,
    retryAfterSeconds: message.retryAfterSeconds,
    content: html`<h1>${message.title}</h1>
      <p>${message.text}</p>
      ${message.errorId === undefined ? undefined : html`<p class="soft">${speech.texts.error.id} <code>${message.errorId}</code></p>`}
      ${wayOn(server, speech, message.way)}`,
  });
}

/** A refusal that must not be redirected. */
export function refusalPage(server: ServerContext, speech: Speech, refusal: Refusal, errorId: string): Answer {
  const texts = speech.texts.error;
  return pageAnswer(server, speech, {
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
          <dd lang="en" dir="ltr">${printableDescription(refusal.description)}</dd>
          <dt>${texts.id}</dt>
          <dd><code>${errorId}</code></dd>
        </dl>
      </details>
      ${wayOn(server, speech, "account")}`,
  });
}
