// Every address that the server answers, in one table.
import { account, changePassword, endOwnSession, revokeOwnGrant, signOut } from "./account/account.ts";
import { beginDemo, endDemo } from "./admin/demo-application.ts";
import { authorize } from "./authorize/authorize.ts";
import { introspect } from "./endpoints/introspect.ts";
import { confirmLogout, logout } from "./endpoints/logout.ts";
import { jwks, metadata } from "./endpoints/metadata.ts";
import { revoke } from "./endpoints/revoke.ts";
import { userinfo } from "./endpoints/userinfo.ts";
import { showInteraction, submitConsent } from "./interaction/interaction.ts";
import { showSignIn, submitSignIn } from "./interaction/sign-in-form.ts";
import { errorCodePage } from "./pages/error-code-page.ts";
import { homePage } from "./pages/home-page.ts";
import { speechFor } from "./pages/speech.ts";
import type { ServerContext } from "./server-context.ts";
import { token } from "./token/token.ts";
import type { Answer, EndpointRequest } from "./http/messages.ts";

const showErrorCode: Handler = (server, request, code) => errorCodePage(server, speechFor(server, request), code);
const showHome: Handler = (server, request) => homePage(server, speechFor(server, request));

export type Handler = (server: ServerContext, request: EndpointRequest, id: string) => Answer | Promise<Answer>;

export interface Route {
  /** Relative to the issuer's path; `:id` is one segment. */
  readonly path: string;
  readonly methods: readonly ("GET" | "POST")[];
  readonly handler: Handler;
  /** `json` endpoints are called by programs, `page` endpoints by people: that decides how a failure looks. */
  readonly kind: "json" | "page" | "public";
  /** Answers registered browser applications across origins. */
  readonly cors?: true;
  /** Also reached with methods that it does not serve, since its own checks refuse them in its own form. */
  readonly anyMethod?: true;
}

export const routes: readonly Route[] = [
  { path: "/authorize", methods: ["GET", "POST"], handler: authorize, kind: "page" },
  { path: "/token", methods: ["POST"], handler: token, kind: "json", cors: true, anyMethod: true },
  { path: "/userinfo", methods: ["GET", "POST"], handler: userinfo, kind: "json", cors: true },
  { path: "/revoke", methods: ["POST"], handler: revoke, kind: "json", cors: true },
  { path: "/introspect", methods: ["POST"], handler: introspect, kind: "json" },
  { path: "/jwks", methods: ["GET"], handler: jwks, kind: "public" },
  { path: "/.well-known/openid-configuration", methods: ["GET"], handler: metadata, kind: "public" },
  { path: "/logout", methods: ["GET", "POST"], handler: logout, kind: "page" },
  { path: "/logout/confirm", methods: ["POST"], handler: confirmLogout, kind: "page" },
  { path: "/sign-in", methods: ["GET"], handler: showSignIn, kind: "page" },
  { path: "/sign-in", methods: ["POST"], handler: submitSignIn, kind: "page" },
  { path: "/interaction/:id", methods: ["GET"], handler: showInteraction, kind: "page" },
  { path: "/interaction/:id/consent", methods: ["POST"], handler: submitConsent, kind: "page" },
  { path: "/account", methods: ["GET"], handler: account, kind: "page" },
  { path: "/account/grants/:id/revoke", methods: ["POST"], handler: revokeOwnGrant, kind: "page" },
  { path: "/account/sessions/:id/end", methods: ["POST"], handler: endOwnSession, kind: "page" },
  { path: "/account/password", methods: ["POST"], handler: changePassword, kind: "page" },
  { path: "/account/sign-out", methods: ["POST"], handler: signOut, kind: "page" },
  { path: "/demo", methods: ["GET"], handler: beginDemo, kind: "page" },
  { path: "/demo/callback", methods: ["GET"], handler: endDemo, kind: "page" },
  { path: "/errors/:id", methods: ["GET"], handler: showErrorCode, kind: "page" },
  { path: "", methods: ["GET"], handler: showHome, kind: "page" },
];

/** Where RFC 8414 §3.1 puts the metadata: between the host and the issuer's path. */
export function wellKnownPath(issuerPath: string): string {
  return `/.well-known/oauth-authorization-server${issuerPath}`;
}
