// The sign-in form.
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import { html } from "./html.ts";
import { pageAnswer, textsFor } from "./page.ts";

export interface LoginPage {
  readonly action: string;
  /** The authorization request, undecoded. */
  readonly parameters: string;
  readonly csrf: string;
  /** The client that the owner is on the way to; undefined on the way to the owner's own page. */
  readonly clientName: string | undefined;
  readonly username: string;
  readonly again: boolean;
  readonly problem: string | undefined;
  readonly status: number;
  readonly retryAfterSeconds?: number;
  readonly formTargets: readonly string[];
}

export function loginPage(server: ServerContext, page: LoginPage): Answer {
  const texts = textsFor(server).login;
  const lead = page.clientName === undefined ? texts.toAccount : texts.toContinue(page.clientName);
  const focusPassword = page.username !== "";
  return pageAnswer(server, {
    title: texts.title,
    status: page.status,
    formTargets: page.formTargets,
    headers: page.retryAfterSeconds === undefined ? {} : { "retry-after": String(page.retryAfterSeconds) },
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
        <label for="password">${texts.password}</label>
        <input
          id="password"
          name="password"
          type="password"
          autocomplete="current-password"
          maxlength="1024"
          required${focusPassword ? html` autofocus` : undefined}
        />
        <button class="primary full">${texts.submit}</button>
      </form>`,
  });
}
