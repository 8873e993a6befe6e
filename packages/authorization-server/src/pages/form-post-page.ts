// An answer to a client as a form that the browser posts (OAuth 2.0 Form Post Response Mode). The page submits itself; a
// browser without scripts shows its button.
import { createHash } from "node:crypto";
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import { Html, html } from "./html.ts";
import { pageAnswer, textsFor } from "./page.ts";

const script = "document.forms[0].submit()";
const scriptElement = new Html(`<script>${script}</script>`);
const scriptDigest = createHash("sha256").update(script).digest("base64");

export interface FormPostPage {
  readonly redirectUri: string;
  readonly fields: ReadonlyArray<readonly [string, string]>;
  readonly formTargets: readonly string[];
}

export function formPostPage(server: ServerContext, page: FormPostPage): Answer {
  const texts = textsFor(server).formPost;
  return pageAnswer(server, {
    title: texts.title,
    formTargets: page.formTargets,
    scriptDigest,
    content: html`<h1>${texts.title}</h1>
      <form method="post" action="${page.redirectUri}">
        ${page.fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
        <div class="choices"><button class="primary">${texts.go}</button></div>
      </form>
      ${scriptElement}`,
  });
}
