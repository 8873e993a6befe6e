// The owner's own page: who has access, where one is signed in, and the password.
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import { scopeList } from "./consent-page.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import { pageAnswer } from "./page.ts";
import { passwordField, showPasswordScript } from "./password-field.ts";
import type { Speech } from "./speech.ts";
import { fill, fillText, inSameLanguage } from "./speech.ts";
import type { Texts } from "./texts.ts";

export interface AccountGrant {
  readonly id: string;
  readonly clientName: string;
  readonly scope: readonly string[];
  readonly sinceMs: number;
}

export interface AccountSession {
  readonly id: string;
  readonly userAgent: string;
  readonly address: string;
  readonly seenAtMs: number;
  readonly current: boolean;
}

export interface AccountPage {
  readonly csrf: string;
  readonly userName: string;
  /** What is known of the owner by the scope of its name. */
  readonly claims: readonly string[];
  readonly grants: readonly AccountGrant[];
  readonly sessions: readonly AccountSession[];
  readonly notice?: string | undefined;
  readonly passwordProblem?: string;
  readonly status?: number;
  readonly retryAfterSeconds?: number;
}

export function accountPage(server: ServerContext, speech: Speech, page: AccountPage): Answer {
  const { texts } = speech;
  const to = (path: string): string => inSameLanguage(`${server.config.issuer}/account/${path}`, speech);
  const hidden = html`<input type="hidden" name="csrf" value="${page.csrf}" />`;
  return pageAnswer(server, speech, {
    title: texts.account.title,
    wide: true,
    status: page.status,
    retryAfterSeconds: page.retryAfterSeconds,
    script: showPasswordScript,
    keepsNoOpener: true,
    content: html`<div class="top">
        <div>
          <h1>${texts.account.title}</h1>
          <p class="lead">${fill(texts.account.hello, { user: page.userName })}</p>
        </div>
        <form method="post" action="${to("sign-out")}">${hidden}<button>${texts.account.signOut}</button></form>
      </div>
      ${page.notice === undefined ? undefined : html`<p class="notice good" role="status">${page.notice}</p>`}
      <h2>${texts.account.applications}</h2>
      ${
        page.grants.length === 0
          ? html`<p class="soft">${texts.account.noApplications}</p>`
          : html`<ul class="rows">
              ${page.grants.map((grant) => grantRow(server, speech, grant, { action: to(`grants/${grant.id}/revoke`), hidden, claims: page.claims }))}
            </ul>`
      }
      <h2>${texts.account.sessions}</h2>
      <ul class="rows">
        ${page.sessions.map((session) => sessionRow(texts, session, to(`sessions/${session.id}/end`), hidden))}
      </ul>
      <h2>${texts.account.passwordTitle}</h2>
      <p class="soft">${texts.account.passwordEffect}</p>
      ${page.passwordProblem === undefined ? undefined : html`<p class="notice bad" role="alert">${page.passwordProblem}</p>`}
      <form class="narrow" method="post" action="${to("password")}">
        ${hidden}
        <input type="text" name="username" autocomplete="username" value="${page.userName}" readonly hidden />
        ${passwordField(texts, { id: "current", label: texts.account.currentPassword, use: "current-password" })}
        ${passwordField(texts, { id: "new", label: texts.account.newPassword, use: "new-password", minCharacters: 8 })}
        <button class="full">${texts.account.changePassword}</button>
      </form>`,
  });
}

interface GrantRow {
  readonly action: string;
  readonly hidden: Html;
  readonly claims: readonly string[];
}

function grantRow(
  server: ServerContext,
  speech: Speech,
  grant: AccountGrant,
  { action, hidden, claims }: GrantRow,
): Html {
  const { texts } = speech;
  const { since, revoke, revokeLabel } = texts.account;
  return html`<li>
    <div>
      <b><bdi>${grant.clientName}</bdi></b>
      <span class="soft">${fill(since, { moment: moment(grant.sinceMs, texts) })}</span>
      ${scopeList(server, speech, grant.scope, claims)}
    </div>
    <form method="post" action="${action}">
      ${hidden}<button aria-label="${fillText(revokeLabel, { client: grant.clientName })}">${revoke}</button>
    </form>
  </li>`;
}

function sessionRow(texts: Texts, session: AccountSession, action: string, hidden: Html): Html {
  const { lastUsed, end, endLabel } = texts.account;
  const browser = describeBrowser(session.userAgent) ?? texts.account.unknownBrowser;
  return html`<li>
    <div>
      <b>${browser}</b>${session.current ? html`<span class="tag">${texts.account.thisBrowser}</span>` : undefined}
      <br /><span class="soft"
        >${session.address} · ${fill(lastUsed, { moment: moment(session.seenAtMs, texts) })}</span
      >
    </div>
    ${session.current ? undefined : html`<form method="post" action="${action}">${hidden}<button aria-label="${fillText(endLabel, { browser })}">${end}</button></form>`}
  </li>`;
}

function moment(timeMs: number, texts: Texts): Html {
  const date = new Date(timeMs);
  const format = new Intl.DateTimeFormat(texts.language, { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" });
  return html`<time datetime="${date.toISOString()}">${format.format(date)} UTC</time>`;
}

const browsers: ReadonlyArray<readonly [RegExp, string]> = [
  [/Edg\//, "Edge"],
  [/OPR\//, "Opera"],
  [/Firefox\//, "Firefox"],
  [/Chrom(e|ium)\/|HeadlessChrome\//, "Chrome"],
  [/Safari\//, "Safari"],
];

const systems: ReadonlyArray<readonly [RegExp, string]> = [
  [/Android/, "Android"],
  [/iPhone|iPad/, "iOS"],
  [/Windows/, "Windows"],
  [/Mac OS X/, "macOS"],
  [/Linux|CrOS/, "Linux"],
];

/** "Firefox, Linux": enough to recognize one's own devices by. */
export function describeBrowser(userAgent: string): string | undefined {
  const browser = browsers.find(([pattern]) => pattern.test(userAgent))?.[1];
  const system = systems.find(([pattern]) => pattern.test(userAgent))?.[1];
  const known = [browser, system].filter((part) => part !== undefined);
  return known.length === 0 ? undefined : known.join(", ");
}
