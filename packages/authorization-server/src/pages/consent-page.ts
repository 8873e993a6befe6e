// The consent question: who asks, for whom, for what, and where the answer goes.
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import type { HtmlValue } from "./html.ts";
import { Html, html } from "./html.ts";
import type { Look } from "./look.ts";
import { pageAnswer } from "./page.ts";
import type { Speech } from "./speech.ts";
import { fill, fillText } from "./speech.ts";

export interface AskedScope {
  readonly token: string;
  /** The owner cannot leave it out. */
  readonly isRequired: boolean;
  readonly isTicked: boolean;
}

export interface ConsentPage {
  readonly action: string;
  readonly switchAccount: string;
  readonly csrf: string;
  readonly clientId: string;
  readonly clientName: string;
  readonly look: Look | undefined;
  readonly isPublic: boolean;
  readonly userName: string;
  readonly scope: readonly AskedScope[];
  /** What is known of the owner by the scope of its name. */
  readonly claims: readonly string[];
  readonly resources: readonly string[];
  readonly redirectUri: string;
  readonly formTargets: readonly string[];
}

const tick = new Html(
  '<svg viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="M4 10.5l4 4 8-9"/></svg>',
);

/** A scope in the operator's words, else in ours, else by its name. `claims` are of the owner's own. */
function scopeWords(server: ServerContext, { texts }: Speech, scope: string, claims: readonly string[]): HtmlValue {
  const { scopeTexts } = server.config;
  const operators = scopeTexts.get(`${scope}#${texts.language}`) ?? scopeTexts.get(scope);
  if (operators !== undefined) return html`<bdi>${operators}</bdi>`;
  const ours = Object.entries(texts.scopes).find(([name]) => name === scope)?.[1];
  return ours ?? fill(claims.includes(scope) ? texts.claimScope : texts.unknownScope, { scope });
}

export function scopeList(
  server: ServerContext,
  speech: Speech,
  scope: readonly string[],
  claims: readonly string[],
): Html {
  return html`<ul class="scopes">
    ${scope.map((token) => html`<li>${tick}<span>${scopeWords(server, speech, token, claims)}</span></li>`)}
  </ul>`;
}

/** What can be left out has a box to untick. */
function scopeChoice(server: ServerContext, speech: Speech, { scope, claims }: ConsentPage): Html {
  const { needed } = speech.texts.consent;
  return html`<ul class="scopes">
    ${scope.map(({ token, isRequired, isTicked }) => {
      const words = scopeWords(server, speech, token, claims);
      return isRequired
        ? html`<li>
            ${tick}<span>${words} <span class="soft">${needed}</span></span>
          </li>`
        : html`<li>
            <label
              ><input type="checkbox" name="scope" value="${token}" ${isTicked ? html` checked` : undefined} /><span
                >${words}</span
              ></label
            >
          </li>`;
    })}
  </ul>`;
}

/** The host for the web, "this device" for loopback and private-use schemes (RFC 8252 §8.6 on impersonation). */
function destination(redirectUri: string, device: string): string {
  const url = new URL(redirectUri);
  if (url.protocol === "https:") return url.host;
  return url.protocol === "http:" ? url.host : device;
}

export function consentPage(server: ServerContext, speech: Speech, page: ConsentPage): Answer {
  const texts = speech.texts.consent;
  const client = page.clientName;
  const places = page.resources.map((resource, index) => html`${index === 0 ? "" : ", "}<b>${resource}</b>`);
  return pageAnswer(server, speech, {
    title: fillText(texts.title, { client }),
    formTargets: page.formTargets,
    look: page.look,
    content: html`<h1>${fill(texts.title, { client })}</h1>
      ${page.clientName === page.clientId ? undefined : html`<p class="lead"><code>${page.clientId}</code></p>`}
      <div class="who">
        <span>${fill(texts.signedInAs, { user: html`<b>${page.userName}</b>` })}</span
        ><a href="${page.switchAccount}">${texts.change}</a>
      </div>
      <form method="post" action="${page.action}">
        <input type="hidden" name="csrf" value="${page.csrf}" />
        <fieldset>
          <legend>${fill(texts.asks, { client })}</legend>
          ${scopeChoice(server, speech, page)}
        </fieldset>
        ${page.scope.some(({ isRequired }) => !isRequired) ? html`<p class="soft">${texts.choose}</p>` : undefined}
        ${page.resources.length === 0 ? undefined : html`<p class="where">${fill(texts.reaches, { places })}</p>`}
        <p class="where">
          ${fill(texts.goesTo, { place: html`<b>${destination(page.redirectUri, texts.goesToDevice)}</b>` })}
        </p>
        ${page.isPublic ? html`<p class="notice soft">${texts.unverified}</p>` : undefined}
        <div class="choices">
          <button class="primary" name="decision" value="allow">${texts.allow}</button>
          <button name="decision" value="deny">${texts.deny}</button>
        </div>
      </form>
      <p class="soft">
        <a href="${server.config.issuer}/account" target="_blank" rel="noopener">${texts.takeBack}</a>
      </p>`,
  });
}
