// The question before a sign-out that no verified ID token speaks for.
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import { html } from "./html.ts";
import { pageAnswer, textsFor } from "./page.ts";

export interface LogoutPage {
  readonly csrf: string;
  readonly userName: string;
  /** The request, to be repeated with the answer. */
  readonly fields: ReadonlyArray<readonly [string, string]>;
  readonly formTargets: readonly string[];
}

export function logoutPage(server: ServerContext, page: LogoutPage): Answer {
  const texts = textsFor(server).logout;
  return pageAnswer(server, {
    title: texts.title,
    formTargets: page.formTargets,
    content: html`<h1>${texts.title}</h1>
      <p>${texts.question(page.userName)}</p>
      <form method="post" action="${server.config.issuer}/logout/confirm">
        <input type="hidden" name="csrf" value="${page.csrf}" />
        ${page.fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
        <div class="choices">
          <button class="primary" name="decision" value="out">${texts.confirm}</button>
          <button name="decision" value="stay">${texts.stay}</button>
        </div>
      </form>`,
  });
}
