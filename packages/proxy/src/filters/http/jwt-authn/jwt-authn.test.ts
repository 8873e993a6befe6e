// What a client is told in each case, what is remembered of a token, where this filter is stricter than Envoy, and what
// it refuses to be configured with. Everything else stands in the parity table.
import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { toBinary } from "@bufbuild/protobuf";
import { MetricRegistry } from "@tulle/telemetry";
import {
  JwtAuthenticationSchema,
  PerRouteConfigSchema,
} from "@tulle/xds/envoy/extensions/filters/http/jwt_authn/v3/config_pb";
import { type CompileScope, detachedScope } from "../../../fields/compile-scope.ts";
import { Place, Problems, problemText } from "../../../fields/problems.ts";
import { typeUrlOf } from "../../../fields/typed-config.ts";
import { type Asked, askFilter, compileFilter } from "../../../testing/filter-probe.ts";
import { fromConfiguration } from "../../../testing/from-configuration.ts";
import { ManualClock } from "../../../testing/manual-clock.ts";
import { makeKey, signToken, signWithPublicKey, unsignedToken } from "../../../testing/signed-tokens.ts";
import { filterOfRouteType } from "../table.ts";

const key = makeKey("ES256", "k1");
const nextKey = makeKey("ES256", "k2");
const rsaKey = makeKey("RS256", "rsa");
const jwks = (...keys: readonly object[]): object => ({ local_jwks: { inline_string: JSON.stringify({ keys }) } });
const provider = { issuer: "i", audiences: ["shop"], ...jwks(key.jwk, rsaKey.jwk) };
const required = { provider_name: "p" };
const everywhere = (requires: object): object[] => [{ match: { prefix: "/" }, requires }];
const config = (extra: object = {}, requires: object = required): object => ({
  providers: { p: { ...provider, ...extra } },
  rules: everywhere(requires),
});
const clock = new ManualClock();
const nowSeconds = Math.floor(clock.wallMs() / 1000);
const claims = { iss: "i", sub: "user", aud: "shop", exp: nowSeconds + 600 };

interface AskOptions {
  readonly json?: object;
  readonly scope?: CompileScope;
  readonly clock?: ManualClock;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function ask(token: string | undefined, options: AskOptions = {}): Asked {
  const { filter, problems } = compileFilter(JwtAuthenticationSchema, options.json ?? config(), options.scope);
  assert.deepEqual(problems, []);
  const headers = { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...options.headers };
  return askFilter(filter!, { path: options.path ?? "/a?b", authority: "shop.test", headers }, options.clock ?? clock);
}

const pem = createPublicKey(rsaKey.privateKey).export({ format: "pem", type: "spki" });
const invalid = 'Bearer realm="http://shop.test/a?b", error="invalid_token"';

const answers: readonly {
  readonly name: string;
  readonly token: string | undefined;
  readonly status: number;
  readonly body: string;
  readonly challenge?: string;
}[] = [
  {
    name: "no token",
    token: undefined,
    status: 401,
    body: "Jwt is missing",
    challenge: 'Bearer realm="http://shop.test/a?b"',
  },
  {
    name: "malformed",
    token: "a.b",
    status: 401,
    body: "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections",
  },
  {
    name: "alg none",
    token: unsignedToken(claims),
    status: 401,
    body: "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections",
  },
  {
    name: "alg none, signed",
    token: `${unsignedToken(claims)}aa`,
    status: 401,
    body: "Jwt header [alg] is not supported",
  },
  {
    name: "HS256 by the public key",
    token: signWithPublicKey(pem, claims, "rsa"),
    status: 401,
    body: "Jwks doesn't have key to match kid or alg from Jwt",
  },
  {
    name: "wrong kid",
    token: signToken(key, claims, { kid: "k9" }),
    status: 401,
    body: "Jwks doesn't have key to match kid or alg from Jwt",
  },
  {
    name: "another's signature",
    token: signToken({ ...nextKey, jwk: key.jwk }, claims),
    status: 401,
    body: "Jwt verification fails",
  },
  {
    name: "wrong issuer",
    token: signToken(key, { ...claims, iss: "j" }),
    status: 401,
    body: "Jwt issuer is not configured",
  },
  { name: "expired", token: signToken(key, { ...claims, exp: nowSeconds - 61 }), status: 401, body: "Jwt is expired" },
  {
    name: "not yet valid",
    token: signToken(key, { ...claims, nbf: nowSeconds + 61 }),
    status: 401,
    body: "Jwt not yet valid",
  },
  {
    name: "wrong audience",
    token: signToken(key, { ...claims, aud: "bank" }),
    status: 403,
    body: "Audiences in Jwt are not allowed",
  },
  {
    name: "padded",
    token: `${signToken(key, claims)}==`,
    status: 401,
    body: "Jwt signature is an invalid Base64url encoded",
  },
];

for (const { name, token, status, body, challenge = invalid } of answers) {
  test(`${name}: ${status} ${body}`, () => {
    const { status: outcome, reply } = ask(token);
    assert.equal(outcome, "stop");
    assert.equal(reply?.status, status);
    assert.equal(reply.body, body);
    assert.equal(reply.headers?.get("www-authenticate"), challenge);
    assert.equal(reply.details, `jwt_authn_access_denied{${body.replaceAll(" ", "_")}}`);
  });
}

test("a good token goes on, and is not forwarded", () => {
  const { status, request } = ask(signToken(key, claims));
  assert.equal(status, "continue");
  assert.equal(request.headers.has("authorization"), false);
});

const cacheCount = (metrics: MetricRegistry, kind: string): number =>
  metrics.counter({
    name: `envoy_http_jwt_authn_jwt_cache_${kind}`,
    labels: { envoy_http_conn_manager_prefix: "test" },
  }).value;

test("a signature is checked once in the life of a token", () => {
  const metrics = new MetricRegistry();
  const scope = detachedScope({ metrics });
  const moving = new ManualClock();
  const token = signToken(key, claims);
  const statusAfter = (seconds: number, json?: object): string => {
    moving.advance(seconds * 1000);
    return ask(token, { scope, clock: moving, ...(json && { json }) }).status;
  };
  assert.equal(statusAfter(0), "continue");
  assert.equal(statusAfter(300), "continue");
  assert.deepEqual([cacheCount(metrics, "miss"), cacheCount(metrics, "hit")], [1, 1]);
  // Remembered or not, a token is asked for its audience and its time.
  assert.equal(statusAfter(0, config({ audiences: ["bank"] })), "stop");
  assert.equal(statusAfter(361), "stop");
  assert.equal(cacheCount(metrics, "miss"), 1);
});

test("a key that is gone is gone for tokens that were good", () => {
  const metrics = new MetricRegistry();
  const scope = detachedScope({ metrics });
  const token = signToken(key, claims);
  assert.equal(ask(token, { scope }).status, "continue");
  assert.equal(
    ask(token, { scope, json: config(jwks(nextKey.jwk)) }).reply?.body,
    "Jwks doesn't have key to match kid or alg from Jwt",
  );
  assert.equal(ask(token, { scope, json: config(jwks(nextKey.jwk, key.jwk)) }).status, "continue");
});

test("another provider's word for a token does not count", () => {
  const scope = detachedScope();
  const token = signToken(key, claims);
  assert.equal(ask(token, { scope }).status, "continue");
  const other = config({ issuer: "", ...jwks(nextKey.jwk) });
  assert.equal(ask(token, { scope, json: other }).status, "stop");
});

const { alg: _, ...jwkOfAnyAlgorithm } = key.jwk;

for (const algorithm of ["ES384", "ES512"]) {
  test(`a P-256 key that names no algorithm is not one for ${algorithm} (Envoy takes it)`, () => {
    const json = config(jwks(jwkOfAnyAlgorithm));
    assert.equal(ask(signToken(key, claims), { json }).status, "continue");
    assert.equal(ask(signToken({ ...key, algorithm }, claims), { json }).reply?.body, "Jwt verification fails");
  });
}

test("a bad token beside a good one is refused, wherever it stands (Envoy's allow_missing takes the last)", () => {
  const json = config({ from_headers: [{ name: "x-a" }, { name: "x-b" }] }, { allow_missing: {} });
  const good = signToken(key, claims);
  assert.equal(ask(undefined, { json }).status, "continue");
  assert.equal(ask(undefined, { json, headers: { "x-a": good, "x-b": good } }).status, "continue");
  assert.equal(ask(undefined, { json, headers: { "x-a": good, "x-b": "x" } }).status, "stop");
  assert.equal(ask(undefined, { json, headers: { "x-a": "x", "x-b": good } }).status, "stop");
});

test("more tokens than anybody needs are not looked at", () => {
  const good = signToken(key, claims);
  for (const requires of [required, { allow_missing: {} }]) {
    const json = config(
      { from_headers: Array.from({ length: 17 }, (__, index) => ({ name: `x-${index}` })) },
      requires,
    );
    const headers = (count: number): Record<string, string> =>
      Object.fromEntries(Array.from({ length: count }, (__, index) => [`x-${index}`, good]));
    assert.equal(ask(undefined, { json, headers: headers(16) }).status, "continue");
    assert.equal(ask(undefined, { json, headers: headers(17) }).reply?.body, "Found multiple Jwt tokens");
  }
});

test("a token with a critical extension is refused (RFC 7515 §4.1.11; Envoy takes it)", () => {
  const token = signToken(key, claims, { crit: ["exp"] });
  assert.equal(ask(token).reply?.body, "Jwt verification fails");
});

test("the rest of a query stays as it was (Envoy sorts and decodes it)", () => {
  const path = `/p?z=%20x&access_token=${signToken(key, claims)}&a=b+c&a`;
  assert.equal(ask(undefined, { path }).request.path, "/p?z=%20x&a=b+c&a");
});

test("a claim that would end a header line is left out", () => {
  const json = config({ claim_to_headers: [{ header_name: "x-sub", claim_name: "sub" }] });
  const token = signToken(key, { ...claims, sub: "a\r\nx-admin: 1" });
  const { status, request } = ask(token, { json, headers: { "x-sub": "client" } });
  assert.equal(status, "continue");
  assert.equal(request.headers.has("x-sub"), false);
});

test("names of every object are no claims", () => {
  const json = config({ claim_to_headers: [{ header_name: "x-c", claim_name: "constructor.name" }] });
  assert.equal(ask(signToken(key, claims), { json }).request.headers.has("x-c"), false);
});

const smallRsa = generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey.export({ format: "jwk" });
const noKey = (reason: string): string =>
  `providers["p"].local_jwks: invalid local jwks: Jwks doesn't have any valid public key; keys[0] is left out: ${reason}`;

const mistakes: readonly { readonly name: string; readonly json: object; readonly expected: readonly string[] }[] = [
  {
    name: "no keys",
    json: config(jwks()),
    expected: ['providers["p"].local_jwks: invalid local jwks: Jwks doesn\'t have any valid public key'],
  },
  {
    name: "no JSON",
    json: config({ local_jwks: { inline_string: "x" } }),
    expected: ['providers["p"].local_jwks: invalid local jwks: Jwks is an invalid JSON'],
  },
  {
    name: "no list",
    json: config({ local_jwks: { inline_string: "{}" } }),
    expected: ['providers["p"].local_jwks: invalid local jwks: Jwks does not have [keys] field'],
  },
  {
    name: "shared secret",
    json: config(jwks({ kty: "oct", k: "AAAA" })),
    expected: [noKey("keys that both sides share are not taken")],
  },
  { name: "weak RSA key", json: config(jwks(smallRsa)), expected: [noKey("an RSA key needs 2048 bits, not 1024")] },
  {
    name: "algorithm of another kind",
    json: config(jwks({ ...key.jwk, alg: "RS256" })),
    expected: [noKey("[alg] RS256 is not for a key of this type")],
  },
  {
    name: "a key for encryption",
    json: config(jwks({ ...key.jwk, use: "enc" })),
    expected: [noKey("it is for encryption")],
  },
  {
    name: "one bad key of two",
    json: config(jwks({ kty: "XX" }, key.jwk)),
    expected: ['providers["p"].local_jwks: keys[0] is left out: [kty] "XX" is not supported'],
  },
  {
    name: "remote keys",
    json: {
      providers: {
        p: { issuer: "i", remote_jwks: { http_uri: { uri: "http://a.test", cluster: "c", timeout: "1s" } } },
      },
    },
    expected: ['providers["p"].remote_jwks: only local_jwks is supported: the control plane fetches the keys'],
  },
  {
    name: "no source of keys",
    json: { providers: { p: { issuer: "i" } } },
    expected: ['providers["p"].jwks_source_specifier: is required'],
  },
  {
    name: "unknown provider",
    json: config({}, { provider_name: "q" }),
    expected: ["rules[0].requires.provider_name: Required provider ['q'] is not configured."],
  },
  {
    name: "unknown requirement",
    json: {
      providers: { p: provider },
      rules: [{ match: { prefix: "/" }, requirement_name: "r" }],
      requirement_map: { a: required },
    },
    expected: ["rules[0].requirement_name: Wrong requirement_name: r. It should be one of [a]"],
  },
  {
    name: "any of one",
    json: config({}, { requires_any: { requirements: [required] } }),
    expected: ["rules[0].requires.requires_any.requirements: value must contain at least 2 item(s)"],
  },
  {
    name: "extract only",
    json: config({}, { extract_only_without_validation: {} }),
    expected: ["rules[0].requires.extract_only_without_validation: this field is not supported"],
  },
  {
    name: "filter state rules",
    json: { providers: { p: provider }, filter_state_rules: { name: "x" } },
    expected: ["filter_state_rules: this field is not supported"],
  },
  {
    name: "failure in metadata",
    json: config({ failed_status_in_metadata: "x" }),
    expected: ['providers["p"].failed_status_in_metadata: this field is not supported'],
  },
];

for (const { name, json, expected } of mistakes) {
  test(`configuration: ${name}`, () => {
    assert.deepEqual(compileFilter(JwtAuthenticationSchema, json).problems, expected);
  });
}

const routeRows: readonly { readonly json: object; readonly made: unknown; readonly problems: readonly string[] }[] = [
  { json: { disabled: true }, made: { type: "disabled" }, problems: [] },
  { json: { requirement_name: "r" }, made: { type: "named", name: "r" }, problems: [] },
  { json: {}, made: undefined, problems: ["requirement_specifier: is required"] },
  { json: { disabled: false }, made: { type: "disabled" }, problems: ["disabled: value must equal true"] },
];

for (const { json, made, problems: expected } of routeRows) {
  test(`route: ${JSON.stringify(json)}`, () => {
    const typeUrl = typeUrlOf(PerRouteConfigSchema);
    const bytes = toBinary(PerRouteConfigSchema, fromConfiguration(PerRouteConfigSchema, json));
    const problems = new Problems();
    const registration = filterOfRouteType(typeUrl)!;
    assert.deepEqual(registration.compileRoute!({ typeUrl, form: "binary", bytes }, Place.root, problems), made);
    assert.deepEqual(problems.list.map(problemText), expected);
  });
}
