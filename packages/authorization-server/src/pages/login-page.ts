// The sign-in form.
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import { html } from "./html.ts";
import type { Look } from "./look.ts";
import { pageAnswer } from "./page.ts";
import { passwordField, showPasswordScript } from "./password-field.ts";
import type { Speech } from "./speech.ts";
import { fill } from "./speech.ts";

export interface LoginPage {
  readonly action: string;
  /** The authorization request, undecoded. */
  readonly parameters: string;
  readonly csrf: string;
  /** The client that the owner is on the way to; undefined on the way to the owner's own page. */
  readonly clientName: string | undefined;
  readonly look: Look | undefined;
  readonly username: string;
  readonly again: boolean;
  readonly problem: string | undefined;
  readonly status: number;
  readonly retryAfterSeconds?: number;
  readonly formTargets: readonly string[];
}

export function loginPage(server: ServerContext, speech: Speech, page: LoginPage): Answer {
  const texts = speech.texts.login;
  const lead = page.clientName === undefined ? texts.toAccount : fill(texts.toContinue, { client: page.clientName });
  const focusPassword = page.username !== "";
  return pageAnswer(server, speech, {
    title: texts.title,
    status: page.status,
    formTargets: page.formTargets,
    look: page.look,
    retryAfterSeconds: page.retryAfterSeconds,
    script: showPasswordScript,
    content: html`<h1>${texts.title}</h1>
      <p class="lead">${lead}</p>
      ${page.problem === undefined ? undefined : html`<p class="notice bad" role="alert" id="problem">${page.problem}</p>`}
      ${page.again && page.problem === undefined ? html`<p class="notice">${texts.again}</p>` : undefined}
      <form method="post" action="${page.action}">
        <input type="hidden" name="csrf" value="${page.csrf}" />
        <input type="hidden" name="request" value="${page.parameters}" />
        <label for="username">${texts.username}</label>
        <input
          id="username"
          name="username"
          autocomplete="username"
          autocapitalize="none"
          spellcheck="false"
          maxlength="200"
          required
          value="${page.username}"
          ${focusPassword ? undefined : html` autofocus`}${page.problem === undefined ? undefined : html` aria-describedby="problem"`}
        />
        ${passwordField(speech.texts, { id: "password", label: texts.password, use: "current-password", focus: focusPassword })}
        <button class="primary full">${texts.submit}</button>
      </form>`,
  });
}
