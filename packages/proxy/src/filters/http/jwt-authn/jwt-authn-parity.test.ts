// The same providers, rules and tokens on this proxy and on a stock Envoy: every call must be let through or refused
// alike, in the same words, and bring the same headers and metadata with it.
import assert from "node:assert/strict";
import { createPublicKey } from "node:crypto";
import { after, before, test } from "node:test";
import type { ParityDifference } from "../../../../../../tests/tools/parity-difference.ts";
import type { ParityListener } from "../../../testing/parity-bootstrap.ts";
import { type ParityCall, type ParityPair, type Seen, startParityPair } from "../../../testing/parity-pair.ts";
import {
  type TestKey,
  makeKey,
  signEncoded,
  signToken,
  signWithPublicKey,
  unsignedToken,
} from "../../../testing/signed-tokens.ts";

const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
const keys = new Map<string, TestKey>(algorithms.map((algorithm) => [algorithm, makeKey(algorithm, algorithm)]));
const rs256 = keys.get("RS256")!;
const es256 = keys.get("ES256")!;
const stranger = makeKey("RS256", "RS256");
const other = makeKey("ES256", "other");
const jwks = (...list: readonly object[]): object => ({
  local_jwks: { inline_string: JSON.stringify({ keys: list }) },
});
const withoutAlg = ({ jwk }: TestKey): object =>
  Object.fromEntries(Object.entries(jwk).filter(([name]) => name !== "alg"));

const nowSeconds = Math.floor(Date.now() / 1000);
const claims = { iss: "one", sub: "user", aud: "shop", exp: nowSeconds + 3600 };
const allKeys = jwks(...[...keys.values()].map(({ jwk }) => jwk));

const jwtFilter = (config: object): object => ({
  name: "envoy.filters.http.jwt_authn",
  typed_config: {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication",
    ...config,
  },
});
const perRoute = (config: object): object => ({
  typed_per_filter_config: {
    "envoy.filters.http.jwt_authn": {
      "@type": "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.PerRouteConfig",
      ...config,
    },
  },
});
const everywhere = (requires: object): object[] => [{ match: { prefix: "/" }, requires }];
const required = { provider_name: "one" };
const oneProvider = (provider: object, requires: object = required): readonly object[] => [
  jwtFilter({ providers: { one: { issuer: "one", ...provider } }, rules: everywhere(requires) }),
];
const twoProviders = {
  one: { issuer: "one", payload_in_metadata: "payload", forward: true, ...jwks(rs256.jwk) },
  two: { issuer: "two", from_headers: [{ name: "x-two" }], payload_in_metadata: "two", ...jwks(other.jwk) },
};
const both = [{ provider_name: "one" }, { provider_name: "two" }];

const listeners: readonly ParityListener[] = [
  { name: "plain", filters: oneProvider({ audiences: ["shop", "https://api.test/"], ...allKeys }) },
  { name: "no_alg", filters: oneProvider(jwks(withoutAlg(rs256), withoutAlg(es256))) },
  { name: "one_key", filters: oneProvider(jwks(rs256.jwk)) },
  { name: "some_keys", filters: oneProvider(jwks({ kty: "XX" }, rs256.jwk)) },
  { name: "any_issuer", filters: oneProvider({ issuer: "", ...allKeys }) },
  { name: "skew", filters: oneProvider({ clock_skew_seconds: 600, ...allKeys }) },
  { name: "expiring", filters: oneProvider({ require_expiration: true, ...allKeys }) },
  { name: "short", filters: oneProvider({ max_lifetime: "600s", ...allKeys }) },
  { name: "subjects", filters: oneProvider({ subjects: { prefix: "use" }, ...allKeys }) },
  {
    name: "places",
    filters: oneProvider({
      from_headers: [{ name: "x-token" }, { name: "X-Prefixed", value_prefix: "Token " }],
      from_params: ["token", "jwt"],
      from_cookies: ["session"],
      ...allKeys,
    }),
  },
  {
    name: "forward",
    filters: oneProvider({
      forward: true,
      forward_payload_header: "X-Payload",
      claim_to_headers: [
        { header_name: "x-sub", claim_name: "sub" },
        { header_name: "x-nested", claim_name: "a.b" },
        { header_name: "x-number", claim_name: "n" },
        { header_name: "x-fraction", claim_name: "f" },
        { header_name: "x-flag", claim_name: "flag" },
        { header_name: "x-list", claim_name: "list" },
        { header_name: "x-object", claim_name: "a" },
        { header_name: "x-none", claim_name: "none" },
        { header_name: "x-path", claim_path: [{ key: "a.b" }] },
      ],
      payload_in_metadata: "payload",
      header_in_metadata: "header",
      normalize_payload_in_metadata: { space_delimited_claims: ["scope", "list", "absent"] },
      ...allKeys,
    }),
  },
  {
    name: "padded",
    filters: oneProvider({ forward_payload_header: "x-payload", pad_forward_payload_header: true, ...allKeys }),
  },
  {
    name: "any",
    filters: [jwtFilter({ providers: twoProviders, rules: everywhere({ requires_any: { requirements: both } }) })],
  },
  {
    name: "all",
    filters: [jwtFilter({ providers: twoProviders, rules: everywhere({ requires_all: { requirements: both } }) })],
  },
  {
    name: "istio",
    filters: [
      jwtFilter({
        providers: twoProviders,
        rules: everywhere({ requires_any: { requirements: [...both, { allow_missing: {} }] } }),
      }),
    ],
  },
  { name: "missing", filters: [jwtFilter({ providers: twoProviders, rules: everywhere({ allow_missing: {} }) })] },
  {
    name: "failed",
    filters: [jwtFilter({ providers: twoProviders, rules: everywhere({ allow_missing_or_failed: {} }) })],
  },
  {
    name: "any_failed",
    filters: [
      jwtFilter({
        providers: twoProviders,
        rules: everywhere({ requires_any: { requirements: [...both, { allow_missing_or_failed: {} }] } }),
      }),
    ],
  },
  {
    name: "rules",
    filters: [
      jwtFilter({
        providers: { one: { issuer: "one", audiences: ["shop"], ...allKeys } },
        rules: [
          { match: { path: "/free" } },
          { match: { prefix: "/named" }, requirement_name: "n" },
          {
            match: { prefix: "/audience" },
            requires: { provider_and_audiences: { provider_name: "one", audiences: ["bank"] } },
          },
          {
            match: { prefix: "/post", headers: [{ name: ":method", string_match: { exact: "POST" } }] },
            requires: required,
          },
        ],
        requirement_map: { n: required, m: { provider_name: "one" } },
        bypass_cors_preflight: true,
        stat_prefix: "own",
      }),
    ],
    routes: [
      { match: { prefix: "/named/off" }, ...perRoute({ disabled: true }) },
      { match: { prefix: "/own" }, ...perRoute({ requirement_name: "m" }) },
      { match: { prefix: "/wrong" }, ...perRoute({ requirement_name: "nobody" }) },
      { match: { prefix: "/" } },
    ],
  },
  {
    name: "hidden",
    filters: [
      jwtFilter({
        providers: { one: { issuer: "one", ...allKeys } },
        rules: everywhere(required),
        strip_failure_response: true,
      }),
    ],
  },
];

/** As Istio asks for a claim: any of the values, as a text or in a list. */
const claim = (path: readonly string[], value: object): object => ({
  metadata: {
    filter: "envoy.filters.http.jwt_authn",
    path: [{ key: "payload" }, ...path.map((key) => ({ key }))],
    value,
  },
});
const inList = (string_match: object): object => ({ list_match: { one_of: { string_match } } });
const policy = (path: string, ...principals: readonly object[]): object => ({
  permissions: [{ url_path: { path: { exact: path } } }],
  principals: [{ and_ids: { ids: principals } }],
});

const withPolicies: ParityListener = {
  name: "policies",
  filters: [
    jwtFilter({
      providers: {
        one: {
          issuer: "one",
          payload_in_metadata: "payload",
          normalize_payload_in_metadata: { space_delimited_claims: ["scope", "permission"] },
          ...allKeys,
        },
      },
      rules: everywhere({ requires_any: { requirements: [required, { allow_missing: {} }] } }),
    }),
    {
      name: "envoy.filters.http.rbac",
      typed_config: {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC",
        rules: {
          action: "ALLOW",
          policies: {
            principal: policy(
              "/principal",
              claim(["iss"], { string_match: { exact: "one" } }),
              claim(["sub"], { string_match: { exact: "user" } }),
            ),
            any_principal: policy("/any", claim(["iss"], { string_match: { safe_regex: { regex: ".+" } } })),
            scope: policy("/scope", claim(["scope"], inList({ exact: "catalog.write" }))),
            groups: policy("/groups", {
              or_ids: {
                ids: [claim(["groups"], inList({ exact: "a" })), claim(["groups"], inList({ prefix: "admin-" }))],
              },
            }),
            nested: policy("/nested", claim(["realm", "roles"], inList({ suffix: "-reader" }))),
            nobody: policy("/nobody", { not_id: claim(["iss"], { string_match: { safe_regex: { regex: ".+" } } }) }),
          },
        },
      },
    },
  ],
};

interface NamedCall extends ParityCall {
  readonly name: string;
}

const call = (
  listener: string,
  name: string,
  token: string | undefined,
  rest: Partial<ParityCall> = {},
): NamedCall => ({
  listener,
  name,
  ...rest,
  headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...rest.headers },
});
const good = signToken(rs256, claims);
const goodTwo = signToken(other, { iss: "two", sub: "second" });
const expired = signToken(rs256, { ...claims, exp: nowSeconds - 3600 });
const publicPem = createPublicKey(rs256.privateKey).export({ format: "pem", type: "spki" });
const encode = (text: string): string => Buffer.from(text).toString("base64url");
const [goodHeader, goodPayload, goodSignature] = good.split(".") as [string, string, string];
const claimed = (extra: object): string => signToken(rs256, { ...claims, ...extra });
const malformed: Readonly<Record<string, string>> = {
  "one part": "abc",
  "two parts": `${goodHeader}.${goodPayload}`,
  "four parts": `${good}.${goodHeader}`,
  "header no base64": `a!b.${goodPayload}.${goodSignature}`,
  "header no JSON": signEncoded(rs256, encode("{"), goodPayload),
  "header a list": signEncoded(rs256, encode("[]"), goodPayload),
  "no alg": signEncoded(rs256, encode("{}"), goodPayload),
  "alg a number": signEncoded(rs256, encode('{"alg":1}'), goodPayload),
  "alg unknown": signEncoded(rs256, encode('{"alg":"XX256"}'), goodPayload),
  "kid a number": signEncoded(rs256, encode('{"alg":"RS256","kid":1}'), goodPayload),
  "payload no base64": `${goodHeader}.a!b.${goodSignature}`,
  "payload no JSON": signEncoded(rs256, goodHeader, encode("x")),
  "iss a number": claimed({ iss: 1 }),
  "sub a number": claimed({ sub: 1 }),
  "aud a number": claimed({ aud: 1 }),
  "aud null": claimed({ aud: null }),
  "aud of numbers": claimed({ aud: ["shop", 1] }),
  "jti a number": claimed({ jti: 1 }),
  "exp a text": claimed({ exp: "never" }),
  "exp negative": claimed({ exp: -1 }),
  "exp null": claimed({ exp: null }),
  "exp a fraction": claimed({ exp: nowSeconds + 0.5 }),
  "iat a text": claimed({ iat: "now" }),
  "nbf a text": claimed({ nbf: "now" }),
  "signature no base64": `${goodHeader}.${goodPayload}.a!b`,
  "no signature": `${goodHeader}.${goodPayload}.`,
  "signature of another text": `${goodHeader}.${encode(JSON.stringify({ ...claims, sub: "root" }))}.${goodSignature}`,
};

const calls: readonly NamedCall[] = [
  call("plain", "no token", undefined),
  call("plain", "no token, long path", undefined, { path: `/${"a".repeat(300)}?q=1`, host: "Shop.Test:81" }),
  ...[...keys].map(([algorithm, key]) => call("plain", algorithm, signToken(key, claims))),
  ...[...keys].map(([algorithm, key]) => call("plain", `${algorithm} again`, signToken(key, claims))),
  ...Object.entries(malformed).map(([name, token]) => call("plain", name, token)),
  call("plain", "alg none", unsignedToken(claims)),
  call("plain", "alg none with signature", `${unsignedToken(claims)}${goodSignature}`),
  call("plain", "HS256 by the public key", signWithPublicKey(publicPem, claims, "RS256")),
  call("no_alg", "HS256 by the public key, key of no algorithm", signWithPublicKey(publicPem, claims, "RS256")),
  call("no_alg", "RS256 with a key of no algorithm", good),
  call("no_alg", "PS256 with a key of no algorithm", signToken({ ...rs256, algorithm: "PS256" }, claims)),
  call("no_alg", "RS256 named for an EC key", signToken({ ...rs256, jwk: es256.jwk }, claims)),
  call("no_alg", "no kid", signToken(es256, claims, { kid: undefined })),
  call("plain", "PS256 by an RS256 key", signToken({ ...rs256, algorithm: "PS256" }, claims)),
  call("plain", "another's key", signToken(stranger, claims)),
  call("plain", "unknown kid", signToken(rs256, claims, { kid: "nobody" })),
  call("plain", "no kid", signToken(rs256, claims, { kid: undefined })),
  call("plain", "Ed25519 signature too short", signToken(keys.get("EdDSA")!, claims).slice(0, -8)),
  call("plain", "ES256 signature too short", signToken(es256, claims).slice(0, -8)),
  call("one_key", "algorithm without a key", signToken(es256, claims)),
  call("some_keys", "a key beside one that is not supported", good),
  call("plain", "unknown issuer", claimed({ iss: "two" })),
  call("plain", "no issuer", claimed({ iss: undefined })),
  call("any_issuer", "any issuer", claimed({ iss: "two" })),
  call("plain", "wrong audience", claimed({ aud: "bank" })),
  call("plain", "no audience", claimed({ aud: undefined })),
  call("plain", "audience in a list", claimed({ aud: ["bank", "shop"] })),
  call("plain", "audience by another scheme", claimed({ aud: "http://api.test" })),
  call("plain", "audience with a path", claimed({ aud: "https://api.test/x" })),
  call("plain", "expired", expired),
  call("plain", "expired within the skew", claimed({ exp: nowSeconds - 1 })),
  call("plain", "not yet valid", claimed({ nbf: nowSeconds + 3600 })),
  call("plain", "valid within the skew", claimed({ nbf: nowSeconds + 30 })),
  call("plain", "no expiration", claimed({ exp: undefined })),
  call("skew", "expired within a wider skew", claimed({ exp: nowSeconds - 300 })),
  call("expiring", "no expiration", claimed({ exp: undefined })),
  call("expiring", "expiration", claimed({ exp: nowSeconds + 1e8 })),
  call("short", "long life", good),
  call("short", "short life", claimed({ exp: nowSeconds + 300 })),
  call("short", "no expiration", claimed({ exp: undefined })),
  call("subjects", "subject", good),
  call("subjects", "another subject", claimed({ sub: "robot" })),
  call("subjects", "another subject and audience", claimed({ sub: "robot", exp: undefined })),

  call("plain", "lower-case scheme", undefined, { headers: { authorization: `bearer ${good}` } }),
  call("plain", "basic", undefined, { headers: { authorization: "Basic abc" } }),
  call("plain", "nothing after the scheme", undefined, {
    headers: { authorization: "Bearer " },
    http1Alone: "a value that ends in a blank is malformed over HTTP/2",
  }),
  call("plain", "words before the scheme", undefined, { headers: { authorization: `x Bearer   ${good}` } }),
  call("plain", "default parameter", undefined, { path: `/?a=1&access_token=${good}&b=2` }),
  call("plain", "header and bad parameter", good, { path: `/?access_token=x` }),
  call("plain", "two headers, one bad", undefined, { headers: { authorization: [`Bearer ${good}`, "Bearer x.y.z"] } }),
  call("places", "header", undefined, { headers: { "x-token": good } }),
  call("places", "not in these places", good),
  call("places", "prefixed header", undefined, { headers: { "x-prefixed": `Token ${good}` } }),
  call("places", "parameter", undefined, { path: `/p?token=${good}` }),
  call("places", "parameter among others", undefined, { path: `/p?a=x&jwt=${good}&z=y` }),
  call("places", "escaped parameter", undefined, { path: `/p?token=${good.replace(".", "%2E")}` }),
  call("places", "empty parameter", undefined, { path: "/p?token=" }),
  call("places", "cookie", undefined, { headers: { cookie: `a=b; session=${good}; c=d` } }),
  call("places", "quoted cookie", undefined, { headers: { cookie: `session="${good}"` } }),
  call("places", "another cookie", undefined, { headers: { cookie: `sessions=${good}` } }),
  call("places", "two places", undefined, { headers: { "x-token": good, cookie: `session=${good}` } }),
  call("places", "two places, one bad", undefined, { headers: { "x-token": good, cookie: "session=x" } }),

  call("forward", "claims", claimed({ a: { b: "c" }, n: 42, f: -1.5, flag: false, list: ["x", 1], scope: "a  b" })),
  call("forward", "claims are not the client's", good, {
    headers: { "x-sub": "root", "x-payload": "x", "x-none": "y", "x-free": "z" },
  }),
  call("forward", "claims beyond ASCII", claimed({ sub: "Zoë", n: 1e15, f: 1e21, "a.b": "dotted", list: "one two" })),
  call("forward", "an object of one", claimed({ a: {}, list: [], scope: "" })),
  call("forward", "one scope", claimed({ scope: "a", list: ["~~~???", "é"] })),
  call("forward", "scope of spaces", claimed({ scope: "  " })),
  call("forward", "negative", claimed({ n: -3, f: 0.1234567 })),
  call("forward", "refused", expired, { headers: { "x-sub": "root" } }),
  call("padded", "padded payload", claimed({ sub: "ab" })),

  ...["any", "all", "istio", "missing", "failed", "any_failed"].flatMap((listener) => [
    call(listener, "no token", undefined),
    call(listener, "first", good),
    call(listener, "second", undefined, { headers: { "x-two": goodTwo } }),
    call(listener, "both", good, { headers: { "x-two": goodTwo } }),
    call(listener, "first expired", expired),
    call(listener, "first expired, second good", expired, { headers: { "x-two": goodTwo } }),
    call(listener, "unknown issuer", claimed({ iss: "three" })),
    call(listener, "second's token in the first's place", goodTwo),
    call(listener, "first malformed", "x.y.z"),
    call(listener, "unknown issuer, second malformed", claimed({ iss: "three" }), { headers: { "x-two": "x" } }),
    call(listener, "client's metadata header", undefined, { headers: { "x-other": "1" } }),
  ]),

  call("rules", "free path", undefined, { path: "/free" }),
  call("rules", "no rule", undefined, { path: "/none" }),
  call("rules", "named", undefined, { path: "/named" }),
  call("rules", "named with token", good, { path: "/named" }),
  call("rules", "off on the route", undefined, { path: "/named/off" }),
  call("rules", "the route's own", undefined, { path: "/own" }),
  call("rules", "the route's own with token", good, { path: "/own" }),
  call("rules", "the route's wrong name", good, { path: "/wrong" }),
  call("rules", "the provider's audience", good, { path: "/audience" }),
  call("rules", "the requirement's audience", claimed({ aud: "bank" }), { path: "/audience" }),
  call("rules", "GET", undefined, { path: "/post" }),
  call("rules", "POST", undefined, { path: "/post", method: "POST" }),
  call("rules", "preflight", undefined, {
    path: "/named",
    method: "OPTIONS",
    headers: { origin: "http://a.test", "access-control-request-method": "PUT" },
  }),
  call("rules", "OPTIONS", undefined, { path: "/named", method: "OPTIONS", headers: { origin: "http://a.test" } }),
  call("policies", "principal", good, { path: "/principal" }),
  call("policies", "another principal", claimed({ sub: "robot" }), { path: "/principal" }),
  call("policies", "no principal", undefined, { path: "/principal" }),
  call("policies", "any principal", good, { path: "/any" }),
  call("policies", "none of any", undefined, { path: "/any" }),
  call("policies", "scope", claimed({ scope: "openid catalog.write" }), { path: "/scope" }),
  call("policies", "another scope", claimed({ scope: "openid catalog.write2" }), { path: "/scope" }),
  call("policies", "group", claimed({ groups: ["b", "a"] }), { path: "/groups" }),
  call("policies", "group by prefix", claimed({ groups: ["b", "admin-x"] }), { path: "/groups" }),
  call("policies", "group as a text", claimed({ groups: "a" }), { path: "/groups" }),
  call("policies", "nested claim", claimed({ realm: { roles: ["item-reader"] } }), { path: "/nested" }),
  call("policies", "nobody", undefined, { path: "/nobody" }),
  call("policies", "somebody", good, { path: "/nobody" }),
  call("policies", "somebody expired", expired, { path: "/nobody" }),
  call("hidden", "no token", undefined),
  call("hidden", "expired", expired),
];

/**
 * Where this filter is stricter than Envoy, or more helpful, on purpose; `docs/differences-from-envoy.md` has the list
 * for people.
 */
interface StricterCall extends NamedCall, ParityDifference<number> {}

const weakKey = makeKey("RS256", "weak", 1024);
const sharedKey = { kty: "oct", kid: "RS256", alg: "HS256", k: Buffer.from(publicPem).toString("base64url") };
const stricterListeners: readonly ParityListener[] = [
  { name: "weak_keys", filters: oneProvider(jwks(weakKey.jwk, sharedKey, es256.jwk)) },
  { name: "any_curve", filters: oneProvider(jwks(withoutAlg(es256))) },
  {
    name: "several",
    filters: oneProvider({ from_headers: [{ name: "x-a" }, { name: "x-b" }], ...allKeys }, { allow_missing: {} }),
  },
  { name: "repeated", filters: oneProvider({ from_headers: [{ name: "x-a" }], ...allKeys }) },
  {
    name: "parameter",
    filters: oneProvider({ from_params: ["token"], ...allKeys }),
  },
];

const stricter = (
  listener: string,
  name: string,
  token: string | undefined,
  statuses: ParityDifference<number>,
  rest: Partial<ParityCall> = {},
): StricterCall => ({ ...call(listener, name, token, rest), ...statuses });
const refusedHere = (why: string): ParityDifference<number> => ({ ours: 401, envoys: 200, why });

const forwarded: ParityDifference<number> = {
  ours: 200,
  envoys: 503,
  why: "a claim cannot end the line that it is forwarded in, so that the request need not fail",
};
const decodedSpace: ParityDifference<number> = {
  ours: 200,
  envoys: 400,
  why: "the space that Envoy decodes ends the request line that it writes",
};

const stricterCalls: readonly StricterCall[] = [
  stricter("plain", "padded signature", `${good}==`, refusedHere("RFC 7515 §2: base64url without padding")),
  stricter(
    "plain",
    "critical extension",
    signToken(rs256, claims, { crit: ["exp"] }),
    refusedHere("RFC 7515 §4.1.11: an extension that is critical and not understood"),
  ),
  stricter(
    "weak_keys",
    "RSA key of 1024 bits",
    signToken(weakKey, claims),
    refusedHere("RFC 7518 §3.3: 2048 bits or more"),
  ),
  stricter(
    "weak_keys",
    "shared secret",
    signWithPublicKey(publicPem, claims, "RS256"),
    refusedHere("RFC 8725 §3.1: the algorithm is the key's and not the token's"),
  ),
  stricter(
    "any_curve",
    "ES384 by a P-256 key",
    signToken({ ...es256, algorithm: "ES384" }, claims),
    refusedHere("RFC 7518 §3.4: ES384 is P-384"),
  ),
  stricter(
    "several",
    "bad token looked at before a good one",
    undefined,
    refusedHere("every token that is there has to be good"),
    {
      headers: { "x-a": good, "x-b": "x" },
    },
  ),
  stricter(
    "repeated",
    "17 tokens",
    undefined,
    refusedHere("more tokens than anybody needs are work for whoever sends them"),
    {
      headers: { "x-a": Array.from({ length: 17 }, () => good) },
    },
  ),
  stricter("forward", "a claim with line ends for a header", claimed({ sub: "a\r\nx-admin: 1" }), forwarded),
  stricter("forward", "a claim with a control character for a header", claimed({ sub: "a\x7fb" }), forwarded),
  stricter("parameter", "escaped query beside a token", undefined, decodedSpace, { path: `/?a=%20x&token=${good}` }),
];

let pair: ParityPair;
let ours: readonly Seen[];
let envoys: readonly Seen[];
let counters: Awaited<ReturnType<ParityPair["counters"]>>;
let stricterAnswers: Awaited<ReturnType<ParityPair["run"]>>;

before(async () => {
  pair = await startParityPair([...listeners, ...stricterListeners, withPolicies], "envoy.filters.http.jwt_authn");
  ({ ours, envoys } = await pair.run(calls));
  counters = await pair.counters(/\.jwt_authn\..*(allowed|denied|bypassed)$/);
  stricterAnswers = await pair.run(stricterCalls);
});

after(() => pair.stop());

for (const [index, { listener, name }] of calls.entries()) {
  test(`${listener}: ${name}`, () => {
    assert.deepEqual(ours[index], envoys[index]);
  });
}

test("both let some calls through and refuse others", () => {
  assert.deepEqual(new Set(envoys.map(({ status }) => status)), new Set([200, 401, 403]));
});

test("the same counters have the same values", () => {
  assert.deepEqual(counters.ours, counters.envoys);
});

for (const [index, { listener, name, ours: own, envoys: theirs, why }] of stricterCalls.entries()) {
  test(`stricter, ${listener}: ${name} (${why})`, () => {
    const answers = [stricterAnswers.ours[index]!.status, stricterAnswers.envoys[index]!.status];
    assert.deepEqual(answers, [own, theirs]);
  });
}
