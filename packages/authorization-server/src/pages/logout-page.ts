// The question before a sign-out that no verified ID token speaks for.
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import { html } from "./html.ts";
import { pageAnswer } from "./page.ts";
import type { Speech } from "./speech.ts";
import { fill, inSameLanguage } from "./speech.ts";

export interface LogoutPage {
  readonly csrf: string;
  readonly userName: string;
  /** The request, to be repeated with the answer. */
  readonly fields: ReadonlyArray<readonly [string, string]>;
  readonly formTargets: readonly string[];
}

export function logoutPage(server: ServerContext, speech: Speech, page: LogoutPage): Answer {
  const texts = speech.texts.logout;
  return pageAnswer(server, speech, {
    title: texts.title,
    formTargets: page.formTargets,
    content: html`<h1>${texts.title}</h1>
      <p>${fill(texts.question, { user: page.userName })}</p>
      <form method="post" action="${inSameLanguage(`${server.config.issuer}/logout/confirm`, speech)}">
        <input type="hidden" name="csrf" value="${page.csrf}" />
        ${page.fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
        <div class="choices">
          <button class="primary" name="decision" value="out">${texts.confirm}</button>
          <button name="decision" value="stay">${texts.stay}</button>
        </div>
      </form>`,
  });
}
