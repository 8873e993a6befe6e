// Every page that a person can meet, made from the same few names: for tests that look at all of them, and for the
// pictures.
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { accountPage } from "../pages/account-page.ts";
import { consentPage } from "../pages/consent-page.ts";
import { errorCodePage } from "../pages/error-code-page.ts";
import { formPostPage } from "../pages/form-post-page.ts";
import { homePage } from "../pages/home-page.ts";
import { loginPage } from "../pages/login-page.ts";
import type { Look } from "../pages/look.ts";
import { logoutPage } from "../pages/logout-page.ts";
import { messagePage, refusalPage } from "../pages/message-page.ts";
import type { Elsewhere, Way } from "../pages/message-page.ts";
import { counted, duration, fillText, speechFor } from "../pages/speech.ts";
import { refuse } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";

export interface GalleryNames {
  readonly client: string;
  readonly user: string;
  readonly look?: Look | undefined;
}

export const galleryNames: GalleryNames = { client: "Orders", user: "ann" };

/** What pages show that is of no language: names, addresses, codes. */
export const galleryData: readonly string[] = ["Orders", "ann", "app", "app.example", "err0r1d", "https://api.example"];

export function askFor(query: string, headers: EndpointRequest["headers"] = {}): EndpointRequest {
  return { method: "GET", query, headers, body: "", address: "192.0.2.1" };
}

/** By name. */
export function pageGallery(
  server: ServerContext,
  request: EndpointRequest,
  { client, user, look }: GalleryNames = galleryNames,
): ReadonlyMap<string, Answer> {
  const speech = speechFor(server, request);
  const { texts } = speech;
  const { login, error, account, logout } = texts;
  const { issuer } = server.config;
  const pages = new Map<string, Answer>();
  const form = {
    look,
    action: `${issuer}/sign-in`,
    parameters: "a=b",
    csrf: "c",
    username: "",
    again: false,
    formTargets: [],
  };
  const wait = (seconds: number) => ({ wait: duration(texts, seconds) });
  const logins = {
    login: { clientName: client },
    "login-account": { clientName: undefined },
    "login-again": { clientName: client, username: user, again: true },
    "login-wrong": { clientName: client, username: user, problem: login.wrong, status: 400 },
    "login-missing": { clientName: client, problem: login.missing, status: 400 },
    "login-reloaded": { clientName: client, problem: login.reloaded, status: 403 },
    "login-throttled": { clientName: client, problem: fillText(login.throttled, wait(300)), status: 429 },
    "login-busy": { clientName: client, problem: fillText(login.busy, wait(1)), status: 503 },
  };
  for (const [name, page] of Object.entries(logins))
    pages.set(name, loginPage(server, speech, { problem: undefined, status: 200, ...form, ...page }));
  const consent = {
    action: `${issuer}/interaction/x/consent`,
    switchAccount: `${issuer}/sign-in?a=b`,
    csrf: "c",
    clientId: "app",
    clientName: client,
    look,
    isPublic: true,
    userName: user,
    scope: [...Object.keys(texts.scopes), "department", "orders.read"].map((token) => ({
      token,
      isRequired: token === "openid",
      isTicked: token !== "email",
    })),
    claims: ["department"],
    resources: ["https://api.example"],
    redirectUri: "https://app.example/cb",
    formTargets: [],
  };
  pages.set("consent", consentPage(server, speech, consent));
  pages.set("consent-device", consentPage(server, speech, { ...consent, redirectUri: "com.example.app:/cb" }));
  const grant = { id: "1", clientName: client, scope: ["openid", "orders.read"], sinceMs: 0 };
  const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
  const session = { id: "1", userAgent: firefox, address: "192.0.2.1", seenAtMs: 0, current: true };
  const sessions = [session, { ...session, current: false }, { ...session, userAgent: "", current: false }];
  const own = { csrf: "c", userName: user, claims: [], grants: [grant], sessions };
  pages.set("account", accountPage(server, speech, own));
  pages.set("account-empty", accountPage(server, speech, { ...own, grants: [], notice: account.revoked }));
  pages.set("account-ended", accountPage(server, speech, { ...own, notice: account.ended }));
  pages.set(
    "account-wrong",
    accountPage(server, speech, { ...own, passwordProblem: account.passwordWrong, status: 400 }),
  );
  const problems = {
    short: counted(texts, account.passwordShort, 8),
    unfit: fillText(account.passwordUnfit, { count: "1024" }),
    common: account.passwordCommon,
    personal: account.passwordPersonal,
  };
  for (const [name, passwordProblem] of Object.entries(problems))
    pages.set(`account-${name}`, accountPage(server, speech, { ...own, passwordProblem, status: 400 }));
  pages.set("logout", logoutPage(server, speech, { csrf: "c", userName: user, fields: [], formTargets: [] }));
  const posted = { redirectUri: "https://app.example/cb", fields: [["code", "x"]] as const, formTargets: [] };
  pages.set("form-post", formPostPage(server, speech, posted));
  const messages: Readonly<Record<string, readonly [string, string, Way | Elsewhere]>> = {
    expired: [error.expiredTitle, error.expired, "account"],
    denied: [fillText(error.deniedTitle, { client }), error.denied, { origin: "https://app.example" }],
    unavailable: [error.unavailableTitle, error.unavailable, "again"],
    broken: [error.brokenTitle, error.broken, "again"],
    forged: [error.forgedTitle, error.forged, "account"],
    "not-found": [error.notFoundTitle, error.notFound, "home"],
    "signed-out": [logout.doneTitle, logout.done, "signIn"],
    "stayed-in": [logout.stayedTitle, logout.stayed, "account"],
    "password-changed": [account.passwordChangedTitle, account.passwordChanged, "signIn"],
  };
  for (const [name, [title, text, way]] of Object.entries(messages))
    pages.set(name, messagePage(server, speech, { status: 200, title, text, way, errorId: "err0r1d" }));
  pages.set("refused", refusalPage(server, speech, refuse("invalid_request", "client_id is missing"), "err0r1d"));
  for (const code of Object.keys(texts.errorCodes)) pages.set(`error-${code}`, errorCodePage(server, speech, code));
  pages.set("home", homePage(server, speech));
  return pages;
}
