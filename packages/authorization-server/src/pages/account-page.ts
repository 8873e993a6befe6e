// The owner's own page: who has access, where one is signed in, and the password.
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import { scopeList } from "./consent-page.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import { pageAnswer, textsFor } from "./page.ts";
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
  readonly grants: readonly AccountGrant[];
  readonly sessions: readonly AccountSession[];
  readonly notice: string | undefined;
  readonly passwordProblem: string | undefined;
  readonly status: number;
}

export function accountPage(server: ServerContext, page: AccountPage): Answer {
  const texts = textsFor(server);
  const path = `${server.config.issuer}/account`;
  const hidden = html`<input type="hidden" name="csrf" value="${page.csrf}" />`;
  return pageAnswer(server, {
    title: texts.account.title,
    wide: true,
    status: page.status,
    content: html`<div class="top">
        <div>
          <h1>${texts.account.title}</h1>
          <p class="lead">${texts.account.hello(page.userName)}</p>
        </div>
        <form method="post" action="${path}/sign-out">${hidden}<button>${texts.account.signOut}</button></form>
      </div>
      ${page.notice === undefined ? undefined : html`<p class="notice good" role="status">${page.notice}</p>`}
      <h2>${texts.account.applications}</h2>
      ${
        page.grants.length === 0
          ? html`<p class="soft">${texts.account.noApplications}</p>`
          : html`<ul class="rows">
              ${page.grants.map((grant) => grantRow(server, texts, grant, path, hidden))}
            </ul>`
      }
      <h2>${texts.account.sessions}</h2>
      <ul class="rows">
        ${page.sessions.map((session) => sessionRow(texts, session, path, hidden))}
      </ul>
      <h2>${texts.account.passwordTitle}</h2>
      <p class="soft">${texts.account.passwordEffect}</p>
      ${page.passwordProblem === undefined ? undefined : html`<p class="notice bad" role="alert">${page.passwordProblem}</p>`}
      <form class="narrow" method="post" action="${path}/password">
        ${hidden}
        <input type="hidden" name="username" autocomplete="username" value="${page.userName}" />
        <label for="current">${texts.account.currentPassword}</label>
        <input id="current" name="current" type="password" autocomplete="current-password" maxlength="1024" required />
        <label for="new">${texts.account.newPassword}</label>
        <input
          id="new"
          name="new"
          type="password"
          autocomplete="new-password"
          minlength="8"
          maxlength="1024"
          required
        />
        <button class="full">${texts.account.changePassword}</button>
      </form>`,
  });
}

function grantRow(server: ServerContext, texts: Texts, grant: AccountGrant, path: string, hidden: Html): Html {
  return html`<li>
    <div>
      <b>${grant.clientName}</b>
      <span class="soft">${texts.account.since} ${moment(grant.sinceMs, texts)}</span> ${scopeList(server, grant.scope)}
    </div>
    <form method="post" action="${path}/grants/${grant.id}/revoke">
      ${hidden}<button aria-label="${texts.account.revokeLabel(grant.clientName)}">${texts.account.revoke}</button>
    </form>
  </li>`;
}

function sessionRow(texts: Texts, session: AccountSession, path: string, hidden: Html): Html {
  const browser = describeBrowser(session.userAgent) ?? texts.account.unknownBrowser;
  return html`<li>
    <div>
      <b>${browser}</b>${session.current ? html`<span class="tag">${texts.account.thisBrowser}</span>` : undefined}
      <br /><span class="soft">${session.address} · ${texts.account.lastUsed} ${moment(session.seenAtMs, texts)}</span>
    </div>
    ${session.current ? undefined : html`<form method="post" action="${path}/sessions/${session.id}/end">${hidden}<button aria-label="${texts.account.endLabel(browser)}">${texts.account.end}</button></form>`}
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
