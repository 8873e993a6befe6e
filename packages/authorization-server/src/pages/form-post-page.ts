// An answer to a client as a form that the browser posts (OAuth 2.0 Form Post Response Mode). The page submits itself;
// a browser without scripts shows its button.
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import { html } from "./html.ts";
import { pageAnswer } from "./page.ts";
import type { Speech } from "./speech.ts";

const script = "document.forms[0].submit()";

export interface FormPostPage {
  readonly redirectUri: string;
  readonly fields: ReadonlyArray<readonly [string, string]>;
  readonly formTargets: readonly string[];
}

export function formPostPage(server: ServerContext, speech: Speech, page: FormPostPage): Answer {
  const texts = speech.texts.formPost;
  return pageAnswer(server, speech, {
    title: texts.title,
    formTargets: page.formTargets,
    script,
    content: html`<h1>${texts.title}</h1>
      <form method="post" action="${page.redirectUri}">
        ${page.fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
        <div class="choices"><button class="primary">${texts.go}</button></div>
      </form>`,
  });
}
