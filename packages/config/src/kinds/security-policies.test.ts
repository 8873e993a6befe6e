/**
 * What AuthorizationPolicies and RequestAuthentications are told about themselves: each rule of Istio's validation,
 * with its place.
 */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { loadText } from "../load/load.ts";
import { parseKeySet } from "../rules/json-web-key-set.ts";
import { splitIpBlock } from "../schema/ip-block.ts";
import { claimPath, headerOfKey } from "./authorization-keys.ts";

const key = { ...generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({ format: "jwk" }), kid: "a" };
const jwks = JSON.stringify({ keys: [key] });

const policy = (spec: string): string =>
  `{ apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: { name: a }, spec: ${spec} }`;
const source = (fields: string): string => policy(`{ rules: [{ from: [{ source: { ${fields} } }] }] }`);
const operation = (fields: string): string => policy(`{ rules: [{ to: [{ operation: { ${fields} } }] }] }`);
const when = (fields: string): string => policy(`{ rules: [{ when: [{ ${fields} }] }] }`);
const jwt = (fields: string): string =>
  `{ apiVersion: security.tulle.io/v1beta1, kind: RequestAuthentication, metadata: { name: a }, spec: { jwtRules: [{ ${fields} }] } }`;

const cases: readonly { readonly name: string; readonly input: string; readonly expected: readonly string[] }[] = [
  { name: "nothing is allowed", input: policy("{}"), expected: [] },
  { name: "a spec that is left empty", input: policy(""), expected: [] },
  { name: "everything is allowed", input: policy("{ rules: [{}] }"), expected: [] },
  {
    name: "every key of a condition",
    input: policy(
      `{ rules: [{ when: [${[
        "{ key: source.ip, values: [10.0.0.0/8, '::1'] }",
        "{ key: source.namespace, values: ['team-*'] }",
        "{ key: source.serviceAccount, values: [shop/webapp, web.app] }",
        "{ key: source.principal, values: [a/b] }",
        "{ key: remote.ip, notValues: [1.2.3.4] }",
        "{ key: request.auth.principal, values: [a/b] }",
        "{ key: request.auth.audiences, values: [a] }",
        "{ key: request.auth.presenter, values: [a] }",
        "{ key: 'request.auth.claims[a][b]', values: [a] }",
        "{ key: 'request.headers[User-Agent]', values: ['a*', '*b'] }",
        "{ key: destination.ip, values: [1.2.3.4] }",
        "{ key: destination.port, values: ['80'] }",
        "{ key: connection.sni, values: ['*.example.com'] }",
      ].join(", ")}] }] }`,
    ),
    expected: [],
  },
  {
    name: "an unknown key",
    input: when("key: request.path, values: [a]"),
    expected: ["IST0106 spec.rules[0].when[0].key"],
  },
  {
    name: "brackets that are no header",
    input: when("key: 'request.headers[a b]', values: [a]"),
    expected: ["IST0106 spec.rules[0].when[0].key"],
  },
  { name: "no values", input: when("key: source.ip"), expected: ["IST0106 spec.rules[0].when[0]"] },
  {
    name: "values that do not fit the key",
    input: when("key: source.ip, values: [10.0.0.0/8, elsewhere], notValues: [10.0.0.0/33]"),
    expected: ["IST0106 spec.rules[0].when[0].values[1]", "IST0106 spec.rules[0].when[0].notValues[0]"],
  },
  {
    name: "metadata that nobody writes",
    input: when("key: 'experimental.envoy.filters.network.x[y]', values: [a]"),
    expected: ["IST0133 spec.rules[0].when[0].key"],
  },
  { name: "a source that says nothing", input: source(""), expected: ["IST0106 spec.rules[0].from[0].source"] },
  {
    name: "an operation that says nothing",
    input: operation("hosts: []"),
    expected: ["IST0106 spec.rules[0].to[0].operation"],
  },
  {
    name: "accounts beside namespaces",
    input: source("serviceAccounts: [a], namespaces: [b]"),
    expected: ["IST0106 spec.rules[0].from[0].source.namespaces"],
  },
  {
    name: "accounts with a wildcard",
    input: source("serviceAccounts: ['shop/*', a/b/c, '']"),
    expected: [0, 1, 2].map((index) => `IST0106 spec.rules[0].from[0].source.serviceAccounts[${index}]`),
  },
  {
    name: "a namespace that is a regular expression",
    input: source("namespaces: ['a|b', 'team-*']"),
    expected: ["IST0106 spec.rules[0].from[0].source.namespaces[0]"],
  },
  {
    name: "addresses",
    input: source("ipBlocks: [10.0.0.0/08], notRemoteIpBlocks: [fe80::1%eth0]"),
    expected: [
      "IST0106 spec.rules[0].from[0].source.ipBlocks[0]",
      "IST0106 spec.rules[0].from[0].source.notRemoteIpBlocks[0]",
    ],
  },
  {
    name: "ports",
    input: operation("ports: ['65536', http], notPorts: ['0']"),
    expected: ["IST0106 spec.rules[0].to[0].operation.ports[0]", "IST0106 spec.rules[0].to[0].operation.ports[1]"],
  },
  {
    name: "stars in the middle stand for themselves",
    input: operation("paths: [/a/*/b, '*a*', '*', '/a*', '*a'], methods: ['G*T']"),
    expected: [
      "IST0133 spec.rules[0].to[0].operation.paths[0]",
      "IST0133 spec.rules[0].to[0].operation.paths[1]",
      "IST0133 spec.rules[0].to[0].operation.methods[0]",
    ],
  },
  {
    name: "path templates",
    input: operation("paths: ['/a/{*}/b/{**}', '/{**}/a', '/a{*}', '{*}', '/{*}/*']"),
    expected: [1, 2, 3, 4].map((index) => `IST0106 spec.rules[0].to[0].operation.paths[${index}]`),
  },
  { name: "DENY of nothing", input: policy("{ action: DENY }"), expected: ["IST0106 spec"] },
  {
    name: "CUSTOM",
    input: policy("{ action: CUSTOM, provider: { name: a }, rules: [{}] }"),
    expected: [],
  },
  {
    name: "CUSTOM without provider",
    input: policy("{ action: CUSTOM, rules: [{}] }"),
    expected: ["IST0106 spec"],
  },
  { name: "a provider of no use", input: policy("{ provider: { name: a } }"), expected: ["IST0106 spec.provider"] },
  { name: "another action", input: policy("{ action: BLOCK }"), expected: ["IST0106 spec.action"] },
  {
    name: "selector and targets",
    input: policy("{ selector: { matchLabels: { a: b } }, targetRefs: [{ kind: Service, name: b }] }"),
    expected: ["TUL0001 spec.targetRefs"],
  },
  { name: "keys in the policy", input: jwt(`issuer: i, jwks: '${jwks}'`), expected: [] },
  { name: "keys at a URL", input: jwt("issuer: i, jwksUri: 'https://a/b'"), expected: [] },
  { name: "keys by discovery", input: jwt("issuer: 'https://a'"), expected: [] },
  { name: "no way to the keys", input: jwt("issuer: alice"), expected: ["IST0133 spec.jwtRules[0].issuer"] },
  {
    name: "two ways to the keys",
    input: jwt(`issuer: i, jwksUri: 'https://a', jwks: '${jwks}'`),
    expected: ["IST0106 spec.jwtRules[0].jwks"],
  },
  { name: "keys that are none", input: jwt("issuer: i, jwks: '{}'"), expected: ["IST0106 spec.jwtRules[0].jwks"] },
  {
    name: "a file",
    input: jwt("issuer: i, jwksUri: 'file:///etc/passwd'"),
    expected: ["IST0106 spec.jwtRules[0].jwksUri"],
  },
  {
    name: "a password",
    input: jwt("issuer: i, jwksUri: 'https://a:b@c'"),
    expected: ["IST0106 spec.jwtRules[0].jwksUri"],
  },
  {
    name: "places of the token",
    input: jwt("issuer: 'https://a', fromHeaders: [{ name: 'a b' }], fromCookies: ['a=b'], fromParams: ['']"),
    expected: ["fromHeaders[0].name", "fromCookies[0]", "fromParams[0]"].map((at) => `IST0106 spec.jwtRules[0].${at}`),
  },
];

for (const { name, input, expected } of cases) {
  test(`policies: ${name}`, () => {
    const { findings } = loadText(input, "policies.yaml");
    assert.deepEqual(
      findings.map(({ code, path }) => `${code} ${path}`),
      expected,
    );
  });
}

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const rsa = publicKey.export({ format: "jwk" });
const short = generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey.export({ format: "jwk" });
const keySets: readonly {
  readonly name: string;
  readonly input: unknown;
  readonly expected: string | readonly unknown[];
}[] = [
  {
    name: "a key",
    input: { keys: [key] },
    expected: [{ kty: "EC", kid: "a", crv: "P-256", x: key["x"], y: key["y"] }],
  },
  {
    name: "a private key goes on as a public one",
    input: { keys: [{ ...privateKey.export({ format: "jwk" }), alg: "RS256" }] },
    expected: [{ kty: "RSA", alg: "RS256", n: rsa["n"], e: rsa["e"] }],
  },
  {
    name: "keys that check no signature are left out",
    input: {
      keys: [
        { ...rsa, use: "enc" },
        { ...rsa, alg: "RSA-OAEP" },
        { kty: "oct", k: "AAAA" },
        short,
        { kty: "EC", crv: "P-256", x: "AA", y: "AA" },
        { kty: "EC", crv: "secp256k1", x: "AA", y: "AA" },
        "text",
        rsa,
      ],
    },
    expected: [{ kty: "RSA", n: rsa["n"], e: rsa["e"] }],
  },
  { name: "no list", input: [], expected: 'a JSON Web Key Set is a JSON object with a list "keys"' },
  {
    name: "no usable key",
    input: { keys: [{ kty: "oct", k: "AAAA" }] },
    expected: "the JSON Web Key Set holds no public key that a proxy can check signatures with",
  },
];

for (const { name, input, expected } of keySets) {
  test(`key sets: ${name}`, () => {
    const parsed = parseKeySet(JSON.stringify(input));
    const keys = "text" in parsed ? (JSON.parse(parsed.text) as { keys: readonly unknown[] }).keys : parsed.problem;
    assert.deepEqual(keys, expected);
  });
}

test("address ranges", () => {
  assert.deepEqual(splitIpBlock("10.1.2.3"), { address: "10.1.2.3", prefixLength: 32 });
  assert.deepEqual(splitIpBlock("2001:db8::/32"), { address: "2001:db8::", prefixLength: 32 });
  for (const text of ["", "10.0.0", "10.0.0.0/", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "a"]) {
    assert.equal(splitIpBlock(text), undefined, text);
  }
});

test("names in the brackets of a key", () => {
  assert.equal(headerOfKey("request.headers[x-a]"), "x-a");
  assert.equal(headerOfKey("request.headers[x]y]"), undefined);
  assert.deepEqual(claimPath("request.auth.claims[a][b.c]"), ["a", "b.c"]);
  assert.equal(claimPath("request.auth.claims"), undefined);
});
