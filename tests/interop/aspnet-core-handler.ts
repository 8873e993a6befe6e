// What ASP.NET Core's OpenIdConnect handler (9.0) sends and checks, request by request, where .NET cannot be had: set
// up as its documentation says (`ResponseType = "code"`, `SaveTokens`, `GetClaimsFromUserInfoEndpoint`), with the
// defaults of all else.
import assert from "node:assert/strict";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { request as httpRequest } from "node:http";
import type { IncomingMessage } from "node:http";
import { createLocalJWKSet, jwtVerify } from "jose";
import type { JSONWebKeySet, JWTPayload } from "jose";

export interface HandlerOptions {
  readonly authority: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Of the application, `https://localhost:7043`. */
  readonly origin: string;
}

/** What the application answers its browser with. */
export interface HandlerAnswer {
  readonly status: number;
  readonly location?: string;
  readonly cookies?: readonly string[];
  readonly body?: string;
}

/** AuthenticationProperties, which travel sealed in `state`. */
interface Properties {
  readonly redirectUri: string;
  readonly codeVerifier?: string;
  readonly correlationId?: string;
}

interface Metadata {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly userinfo_endpoint: string;
  readonly end_session_endpoint: string;
  readonly jwks_uri: string;
}

type Fields = Readonly<Record<string, string>>;

const noncePrefix = ".AspNetCore.OpenIdConnect.Nonce.";
const correlationPrefix = ".AspNetCore.Correlation.";
const clockSkewSeconds = 300;
const nonceLifetimeMs = 15 * 60_000;
/** 100 ns since the year 1, as .NET counts. */
const ticksAtUnixEpoch = 621_355_968_000_000_000n;
const telemetry = { "x-client-SKU": "ID_NET9_0", "x-client-ver": "8.0.1.0" };

export class AspNetCoreHandler {
  readonly #options: HandlerOptions;
  readonly #sealed = new Map<string, Properties>();
  #metadata: Metadata | undefined;
  #keys: JSONWebKeySet | undefined;
  /** What the cookie of the signed-in session would hold. */
  idToken: string | undefined;
  user: Readonly<Record<string, unknown>> | undefined;

  constructor(options: HandlerOptions) {
    this.#options = options;
  }

  /** A page that needs a sign-in. */
  async challenge(path: string): Promise<HandlerAnswer> {
    const { clientId, origin } = this.#options;
    const metadata = await this.#configuration();
    const codeVerifier = randomBytes(32).toString("base64url");
    const correlationId = randomBytes(32).toString("base64url");
    const nonce = `${BigInt(Date.now()) * 10_000n + ticksAtUnixEpoch}.${btoa(randomUUID() + randomUUID())}`;
    const parameters = {
      client_id: clientId,
      redirect_uri: `${origin}/signin-oidc`,
      response_type: "code",
      scope: "openid profile",
      code_challenge: createHash("sha256").update(codeVerifier).digest("base64url"),
      code_challenge_method: "S256",
      response_mode: "form_post",
      nonce,
      state: this.#seal({ redirectUri: path, codeVerifier, correlationId }),
      ...telemetry,
    };
    return {
      status: 302,
      location: `${metadata.authorization_endpoint}?${escaped(parameters)}`,
      cookies: [`${noncePrefix}${nonceName(nonce)}`, `${correlationPrefix}${correlationId}`].map(
        (name) => `${name}=N; max-age=900; path=/signin-oidc; secure; samesite=none; httponly`,
      ),
    };
  }

  /** POST /signin-oidc. */
  async signIn(contentType: string | undefined, body: string, cookies: ReadonlySet<string>): Promise<HandlerAnswer> {
    assert.match(contentType ?? "", /^application\/x-www-form-urlencoded/i);
    const message = new URLSearchParams(body);
    const properties = this.#sealed.get(message.get("state") ?? "");
    if (properties?.codeVerifier === undefined) return failed("The oauth state was missing or invalid.");
    if (!cookies.has(correlationPrefix + properties.correlationId)) return failed("Correlation failed.");
    if (message.has("error")) {
      return failed(`Message contains error: '${message.get("error")}', '${message.get("error_description")}'.`);
    }
    assert.ok(message.get("code"), "IDX21334: neither code nor id_token");
    const tokens = await this.#redeem(message.get("code")!, properties.codeVerifier);
    const claims = await this.#validIdToken(tokens, cookies);
    this.user = await this.#userinfo(tokens["access_token"]!, claims);
    this.idToken = tokens["id_token"];
    return { status: 302, location: properties.redirectUri };
  }

  /** SignOut("Cookies", "OpenIdConnect"). */
  async signOut(): Promise<HandlerAnswer> {
    const metadata = await this.#configuration();
    const parameters = {
      post_logout_redirect_uri: `${this.#options.origin}/signout-callback-oidc`,
      id_token_hint: this.idToken!,
      state: this.#seal({ redirectUri: "/signed-out" }),
      ...telemetry,
    };
    this.user = undefined;
    this.idToken = undefined;
    return { status: 302, location: `${metadata.end_session_endpoint}?${escaped(parameters)}` };
  }

  /** GET /signout-callback-oidc. */
  signedOut(query: URLSearchParams): HandlerAnswer {
    const properties = this.#sealed.get(query.get("state") ?? "");
    return properties === undefined ? failed("no state came back") : { status: 302, location: properties.redirectUri };
  }

  async #configuration(): Promise<Metadata> {
    if (this.#metadata !== undefined) return this.#metadata;
    const found = await backchannel("GET", `${this.#options.authority}/.well-known/openid-configuration`);
    const metadata = JSON.parse(found.body) as Metadata;
    this.#keys = JSON.parse((await backchannel("GET", metadata.jwks_uri)).body) as JSONWebKeySet;
    return (this.#metadata = metadata);
  }

  async #redeem(code: string, codeVerifier: string): Promise<Fields> {
    const { clientId, clientSecret, origin } = this.#options;
    const fields = {
      client_id: clientId,
      client_secret: clientSecret,
      code,
      grant_type: "authorization_code",
      redirect_uri: `${origin}/signin-oidc`,
      code_verifier: codeVerifier,
    };
    const { token_endpoint: endpoint } = await this.#configuration();
    const type = { "content-type": "application/x-www-form-urlencoded" };
    const answer = await backchannel("POST", endpoint, type, escaped(fields).replaceAll("%20", "+"));
    assert.equal(answer.status, 200, answer.body);
    assert.equal(answer.mediaType, "application/json");
    const tokens = JSON.parse(answer.body) as Fields;
    assert.ok(tokens["id_token"] && tokens["access_token"], "IDX21336: both tokens are needed");
    // SaveTokens reads it as an integer.
    assert.match(String(tokens["expires_in"]), /^\d+$/);
    return tokens;
  }

  /** TokenValidationParameters, then OpenIdConnectProtocolValidator. */
  async #validIdToken(tokens: Fields, cookies: ReadonlySet<string>): Promise<JWTPayload> {
    const { issuer } = await this.#configuration();
    const { payload } = await jwtVerify(tokens["id_token"]!, createLocalJWKSet(this.#keys!), {
      issuer,
      audience: this.#options.clientId,
      clockTolerance: clockSkewSeconds,
      requiredClaims: ["aud", "exp", "iat", "iss", "sub", "nonce"],
    });
    const nonce = String(payload["nonce"]);
    assert.ok(cookies.has(noncePrefix + nonceName(nonce)), "IDX21323: no cookie of this nonce");
    const at = Number((BigInt(nonce.split(".")[0]!) - ticksAtUnixEpoch) / 10_000n);
    assert.ok(at + nonceLifetimeMs > Date.now(), "IDX21324: the nonce has expired");
    if (payload["azp"] !== undefined) assert.equal(payload["azp"], this.#options.clientId, "IDX21340");
    if (payload["at_hash"] !== undefined) {
      const digest = createHash("sha256").update(tokens["access_token"]!).digest();
      assert.equal(payload["at_hash"], digest.subarray(0, 16).toString("base64url"), "IDX21348");
    }
    return payload;
  }

  async #userinfo(accessToken: string, claims: JWTPayload): Promise<Readonly<Record<string, unknown>>> {
    const { userinfo_endpoint: endpoint } = await this.#configuration();
    const answer = await backchannel("GET", endpoint, { authorization: `Bearer ${accessToken}` });
    assert.equal(answer.status, 200, answer.body);
    assert.equal(answer.mediaType, "application/json");
    const user = JSON.parse(answer.body) as Readonly<Record<string, unknown>>;
    assert.equal(user["sub"], claims.sub, "IDX21338");
    return user;
  }

  /** As data protection does; several KB, as where an application keeps much in them. */
  #seal(properties: Properties): string {
    const state = `CfDJ8${randomBytes(4500).toString("base64url")}`;
    this.#sealed.set(state, properties);
    return state;
  }
}

/** Stands for the sealed nonce in the cookie's name. */
function nonceName(nonce: string): string {
  return createHash("sha256").update(nonce).digest("base64url");
}

function failed(reason: string): HandlerAnswer {
  return { status: 500, body: `AuthenticationFailureException: ${reason}` };
}

/** `Uri.EscapeDataString`, which leaves unreserved characters alone (RFC 3986 §2.3). */
function escaped(fields: Fields): string {
  const escape = (text: string): string =>
    encodeURIComponent(text).replace(
      /[!'()*]/g,
      (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  return Object.entries(fields)
    .map((pair) => pair.map(escape).join("="))
    .join("&");
}

interface BackchannelAnswer {
  readonly status: number;
  readonly mediaType: string | undefined;
  readonly body: string;
}

/** HttpClient sends no Accept. */
async function backchannel(method: string, url: string, headers: Fields = {}, body = ""): Promise<BackchannelAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const all = { "user-agent": "Microsoft ASP.NET Core OpenIdConnect handler", ...headers };
  httpRequest(url, { method, headers: all }, resolve).once("error", reject).end(body);
  const answer = await promise;
  return {
    status: answer.statusCode!,
    mediaType: answer.headers["content-type"]?.split(";")[0]?.trim(),
    body: Buffer.concat(await answer.toArray()).toString(),
  };
}
