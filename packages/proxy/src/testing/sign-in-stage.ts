// The stage on which tests of sign-in play: a token endpoint that does what the code says, and a browser with cookies.
import { randomUUID } from "node:crypto";
import http from "node:http";
import type net from "node:net";
import { makeKey, signToken } from "./signed-tokens.ts";

export interface TokenEndpoint {
  readonly port: number;
  /** Bodies of the requests, and `Authorization` where one came. */
  readonly seen: { readonly form: URLSearchParams; readonly authorization: string | undefined }[];
  /** Answers wait for it. */
  gate: Promise<void>;
  close(): void;
}

/**
 * A code is `<what it brings>`, or `openid.<nonce>`; a refresh token `<what it brings>.<id>`: `good`, `again` (its
 * refresh token is `good`), `doomed` (its refresh token is refused), `refused`, `garbage`, `endless`, `nothing`,
 * `huge`, `newline`.
 */
export async function startTokenEndpoint(nowSeconds: () => number): Promise<TokenEndpoint> {
  const server = http.createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      const form = new URLSearchParams(body);
      endpoint.seen.push({ form, authorization: request.headers.authorization });
      void endpoint.gate.then(() => {
        const { status, text } = answerTo(form, nowSeconds());
        response.writeHead(status, { "content-type": "application/json" }).end(text);
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const endpoint: TokenEndpoint = {
    port: (server.address() as net.AddressInfo).port,
    seen: [],
    gate: Promise.resolve(),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
  return endpoint;
}

/** Nobody looks at the signature; Envoy wants one all the same. */
const key = makeKey("ES256", "issuer");

const nextRefreshTokens: Readonly<Record<string, string>> = { again: "good", doomed: "refused" };

function answerTo(form: URLSearchParams, nowSeconds: number): { readonly status: number; readonly text: string } {
  const isCode = form.get("grant_type") === "authorization_code";
  const [what = "", nonce] = (form.get(isCode ? "code" : "refresh_token") ?? "").split(".");
  const tokens: Record<string, unknown> = {
    access_token: `access-by-${what}`,
    token_type: "Bearer",
    expires_in: 300,
    // No two are alike: what a refresh brought is remembered.
    refresh_token: `${nextRefreshTokens[what] ?? "again"}.${randomUUID()}`,
  };
  const identity = { iss: "issuer", sub: "user", aud: "shop", exp: nowSeconds + 600, nonce };
  switch (what) {
    case "refused":
      return { status: 400, text: '{"error":"invalid_grant"}' };
    case "garbage":
      return { status: 200, text: "<html>" };
    case "nothing":
      return { status: 200, text: '{"expires_in":300}' };
    case "endless":
      delete tokens["expires_in"];
      break;
    case "huge":
      tokens["access_token"] = "a".repeat(4096);
      break;
    case "newline":
      tokens["access_token"] = "a\r\nset-cookie: b";
      break;
    case "openid":
      tokens["id_token"] = signToken(key, identity);
      break;
    case "othernonce":
      tokens["id_token"] = signToken(key, { ...identity, nonce: "other" });
      break;
    case "otherclient":
      tokens["id_token"] = signToken(key, { ...identity, aud: ["bank"] });
      break;
    case "expired":
      tokens["id_token"] = signToken(key, { ...identity, exp: nowSeconds - 1 });
      break;
  }
  return { status: 200, text: JSON.stringify(tokens) };
}

export interface Page {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

export type Visit = (path: string, headers: Readonly<Record<string, string>>) => Promise<Page>;

/** By its attributes alone: a value is random text, which may hold whatever the attributes would say. */
export function isDeleted(setCookie: string): boolean {
  return setCookie
    .split(";")
    .slice(1)
    .some((attribute) => /^\s*(max-age=0|expires=[^,]*, 01 Jan 1970 .*)$/i.test(attribute));
}

/** Keeps cookies as a browser does, but for their time and place. */
export class Browser {
  readonly cookies = new Map<string, string>();
  readonly #visit: Visit;

  constructor(visit: Visit) {
    this.#visit = visit;
  }

  async get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Page> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const page = await this.#visit(path, { ...(cookie !== "" && { cookie }), ...headers });
    for (const line of page.headers["set-cookie"] ?? []) {
      const [name = "", value = ""] = line.split(";", 1)[0]!.split(/=(.*)/s);
      if (isDeleted(line)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return page;
  }

  /** Asks for a page, and gives the parameters with which it was sent to sign in. */
  async startSignIn(path: string): Promise<URLSearchParams> {
    const { status, headers } = await this.get(path);
    if (status !== 302) throw new Error(`${path} answered ${status}`);
    return new URL(headers.location!).searchParams;
  }

  /** Comes back from the authorization server. */
  callback(state: string, code: string): Promise<Page> {
    return this.get(`/signed-in?code=${encodeURIComponent(code)}&state=${encodeURIComponent(state)}`);
  }

  async signIn(path: string, what = "good"): Promise<Page> {
    const parameters = await this.startSignIn(path);
    const nonce = parameters.get("nonce");
    return this.callback(parameters.get("state")!, nonce === null ? what : `${what}.${nonce}`);
  }
}
