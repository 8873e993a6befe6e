// Where the sign-in of `--demo` ends: what an application gets, as its developer would see it. In English alone, as
// answers of the protocol are.
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import { pageAnswer } from "./page.ts";
import type { Speech } from "./speech.ts";

export interface DemoPage {
  readonly title: string;
  readonly text: string;
  readonly status: number;
  /** Shown one below the other, by name. */
  readonly values: readonly (readonly [string, string])[];
}

export function demoPage(server: ServerContext, speech: Speech, page: DemoPage): Answer {
  const { issuer } = server.config;
  const row = ([name, value]: readonly [string, string]): Html =>
    html`<dt>${name}</dt>
      <dd><code>${value}</code></dd>`;
  return pageAnswer(server, speech, {
    title: page.title,
    status: page.status,
    wide: true,
    content: html`<div lang="en">
      <h1>${page.title}</h1>
      <p>${page.text}</p>
      <dl>${page.values.map((value) => row(value))}</dl>
      <a class="button primary full" href="${issuer}/demo">Once more</a>
      <a class="button full" href="${issuer}/account">Your account</a>
    </div>`,
  });
}
