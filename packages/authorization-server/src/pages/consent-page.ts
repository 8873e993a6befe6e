// The consent question: who asks, for whom, for what, and where the answer goes.
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import { Html, html } from "./html.ts";
import { pageAnswer, textsFor } from "./page.ts";

export interface ConsentPage {
  readonly action: string;
  readonly switchAccount: string;
  readonly csrf: string;
  readonly clientId: string;
  readonly clientName: string;
  readonly isPublic: boolean;
  readonly userName: string;
  readonly scope: readonly string[];
  readonly resources: readonly string[];
  readonly redirectUri: string;
  readonly formTargets: readonly string[];
}

const tick = new Html(
  '<svg viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="M4 10.5l4 4 8-9"/></svg>',
);

/** A scope in the operator's words, else in ours, else by its name. */
export function scopeWords(server: ServerContext, scope: string): string {
  const texts = textsFor(server);
  return server.config.scopeTexts.get(scope) ?? texts.scopes[scope] ?? texts.unknownScope(scope);
}

export function scopeList(server: ServerContext, scope: readonly string[]): Html {
  return html`<ul class="scopes">
    ${scope.map((token) => html`<li>${tick}<span>${scopeWords(server, token)}</span></li>`)}
  </ul>`;
}

/** The host for the web, "this device" for loopback and private-use schemes (RFC 8252 §8.6 on impersonation). */
function destination(redirectUri: string, device: string): string {
  const url = new URL(redirectUri);
  if (url.protocol === "https:") return url.host;
  return url.protocol === "http:" ? url.host : device;
}

export function consentPage(server: ServerContext, page: ConsentPage): Answer {
  const texts = textsFor(server).consent;
  return pageAnswer(server, {
    title: texts.title(page.clientName),
    formTargets: page.formTargets,
    content: html`<h1>${texts.title(page.clientName)}</h1>
      ${page.clientName === page.clientId ? undefined : html`<p class="lead"><code>${page.clientId}</code></p>`}
      <div class="who">
        <span>${texts.signedInAs} <b>${page.userName}</b></span
        ><a href="${page.switchAccount}">${texts.change}</a>
      </div>
      <p>${texts.asks(page.clientName)}</p>
      ${scopeList(server, page.scope)}
      ${page.resources.length === 0 ? undefined : html`<p class="where">${texts.reaches} ${page.resources.map((resource, index) => html`${index === 0 ? "" : ", "}<b>${resource}</b>`)}.</p>`}
      <p class="where">${texts.goesTo} <b>${destination(page.redirectUri, texts.goesToDevice)}</b>.</p>
      ${page.isPublic ? html`<p class="notice soft">${texts.unverified}</p>` : undefined}
      <form method="post" action="${page.action}">
        <input type="hidden" name="csrf" value="${page.csrf}" />
        <div class="choices">
          <button class="primary" name="decision" value="allow">${texts.allow}</button>
          <button name="decision" value="deny">${texts.deny}</button>
        </div>
      </form>
      <p class="soft">${texts.takeBack}</p>`,
  });
}
