// The application of `--demo`, in the server itself: `/demo` begins a sign-in as any client would, and its callback
// redeems the code and shows what came. It is there only while the demo client's redirect URI is this one.
import { decodeJwt } from "jose";
import { readCookieValue } from "../http/cookies.ts";
import { newSecret } from "../crypto/secrets.ts";
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { seeOther } from "../http/messages.ts";

import { demoPage } from "../pages/demo-page.ts";
import { messagePage } from "../pages/message-page.ts";
import { speechFor } from "../pages/speech.ts";
import { Parameters } from "../protocol/parameters.ts";
import { s256 } from "../protocol/pkce.ts";
import type { ServerContext } from "../server-context.ts";
import { token } from "../token/token.ts";
import { demoFile, readDemo } from "./demo.ts";

const cookieName = "tulle_demo";
const cookieShape = /^[\w-]{43}\.[\w-]{43}$/;
const cookieSeconds = 600;
/** In the place of the verifier, once the code is redeemed: a reload is told from an answer that nobody asked for. */
const redeemed = "_".repeat(43);

function isServed({ config }: ServerContext): boolean {
  return config.demo && config.demoRedirectUri === `${config.issuer}/demo/callback`;
}

function notFound(server: ServerContext, request: EndpointRequest): Answer {
  const speech = speechFor(server, request);
  const { notFoundTitle: title, notFound: text } = speech.texts.error;
  return messagePage(server, speech, { status: 404, title, text, way: "home" });
}

function cookie({ config }: ServerContext, value: string, maxAgeSeconds: number): string {
  const { pathname, protocol } = new URL(`${config.issuer}/demo`);
  const secure = protocol === "https:" ? "; Secure" : "";
  return `${cookieName}=${value}; Path=${pathname}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${secure}`;
}

/** GET /demo: to the authorization endpoint, with what the callback has to know in a cookie. */
export function beginDemo(server: ServerContext, request: EndpointRequest): Answer {
  const demo = isServed(server) ? readDemo(demoFile(server.config)) : undefined;
  if (demo === undefined) return notFound(server, request);
  const [state, verifier] = [newSecret(), newSecret()];
  const parameters = new URLSearchParams({
    client_id: demo.clientId,
    response_type: "code",
    redirect_uri: demo.redirectUri,
    scope: "openid profile email offline_access",
    state,
    code_challenge: s256(verifier),
    code_challenge_method: "S256",
  });
  return seeOther(`${server.config.issuer}/authorize?${parameters.toString()}`, {
    "set-cookie": cookie(server, `${state}.${verifier}`, cookieSeconds),
  });
}

/** GET /demo/callback: the code for tokens, by the token endpoint as it answers everybody. */
export async function endDemo(server: ServerContext, request: EndpointRequest): Promise<Answer> {
  const demo = isServed(server) ? readDemo(demoFile(server.config)) : undefined;
  if (demo === undefined) return notFound(server, request);
  const speech = speechFor(server, request);
  const answer = Parameters.parse(request.query);
  const [state = "", verifier = ""] = (readCookieValue(request.headers.cookie, cookieName, cookieShape) ?? "").split(
    ".",
  );
  const fail = (text: string, values: readonly (readonly [string, string])[]): Answer =>
    demoPage(server, speech, { title: "The sign-in did not end well", text, status: 400, values });
  if (state === "" || answer.get("state") !== state)
    return fail("This answer belongs to no sign-in that this browser has begun.", []);
  if (verifier === redeemed)
    return demoPage(server, speech, {
      title: "Shown already",
      text: "The tokens of this sign-in were shown once, and kept nowhere: its code works no second time.",
      status: 200,
      values: [],
    });
  const error = answer.get("error");
  if (error !== undefined)
    return fail("The server answered with an error.", [
      ["error", error],
      ["error_description", answer.get("error_description") ?? ""],
    ]);
  const form = new URLSearchParams({
    grant_type: "authorization_code",
    code: answer.get("code") ?? "",
    redirect_uri: demo.redirectUri,
    code_verifier: verifier,
  });
  const credentials = Buffer.from(`${demo.clientId}:${demo.clientSecret}`).toString("base64");
  const tokens = await token(server, {
    method: "POST",
    query: "",
    headers: { "content-type": "application/x-www-form-urlencoded", authorization: `Basic ${credentials}` },
    body: form.toString(),
    address: request.address,
  });
  const body = JSON.parse(tokens.body) as Readonly<Record<string, unknown>>;
  const values = Object.entries(body).map(([name, value]) => [name, String(value)] as const);
  if (tokens.status !== 200) return fail("The token endpoint refused the code.", values);
  const claims = JSON.stringify(decodeJwt(String(body["id_token"])), undefined, 2);
  const page = demoPage(server, speech, {
    title: "Signed in",
    text: "This is what an application gets from the token endpoint, and what its ID token says.",
    status: 200,
    values: [["ID token says", claims], ...values],
  });
  return { ...page, headers: { ...page.headers, "set-cookie": cookie(server, `${state}.${redeemed}`, cookieSeconds) } };
}
