// The readers and comparers of the protocol, by table and by property.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decodeFormText, encodeFormText, Parameters } from "./parameters.ts";
import { isS256Challenge, isVerifier, s256, verifierMatches } from "./pkce.ts";
import { answerLocation, echoableState, redirectUriMatches, redirectUriProblem } from "./redirect-uri.ts";
import { printableDescription } from "./refusal.ts";
import { parseScope } from "./scope.ts";

test("form text: whatever is encoded decodes to itself", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      // A lone surrogate has no UTF-8 and becomes the replacement character on the way out.
      assert.equal(decodeFormText(encodeFormText(text)), text.toWellFormed());
    }),
  );
});

test("form text: what is broken is not repaired", () => {
  for (const text of ["%", "%2", "%zz", "%ff", "%c3%28", "%ed%a0%80", "a%", "\u00ff"]) {
    assert.equal(decodeFormText(text), undefined, text);
  }
  assert.equal(decodeFormText("a+b%2B"), "a b+");
  assert.equal(decodeFormText("\u00c3\u00a9"), "é", "raw UTF-8 bytes");
});

test("parameters: every pair is either read, or reported as repeated or malformed", () => {
  const pair = fc.tuple(fc.string({ minLength: 1 }), fc.string());
  fc.assert(
    fc.property(fc.array(pair, { maxLength: 20 }), (pairs) => {
      const text = pairs.map(([name, value]) => `${encodeFormText(name)}=${encodeFormText(value)}`).join("&");
      const parameters = Parameters.parse(text);
      for (const [name, value] of pairs) {
        const first = pairs.find(([other]) => other === name);
        if (pairs.filter(([other]) => other === name).length > 1) assert.ok(parameters.repeated.has(name));
        else if (/\p{Cc}/u.test(value)) assert.ok(parameters.malformed.has(name));
        else assert.equal(parameters.get(name), value === "" ? undefined : first![1]);
      }
    }),
  );
});

test("redirect URIs: what may be registered", () => {
  const cases: readonly { uri: string; http?: boolean; problem?: RegExp }[] = [
    { uri: "https://a.example/cb" },
    { uri: "https://a.example/cb?x=1" },
    { uri: "http://127.0.0.1/cb" },
    { uri: "http://[::1]:80/cb" },
    { uri: "com.example.app:/cb" },
    { uri: "http://localhost/cb", http: true },
    { uri: "http://localhost/cb", problem: /is http/ },
    { uri: "http://127.0.0.1.evil.example/cb", problem: /is http/ },
    { uri: "https://a.example/#f", problem: /fragment/ },
    { uri: "https://user@a.example/", problem: /user information/ },
    { uri: "https://*.example/cb", problem: /wildcard/ },
    { uri: "https://a.example/c b", problem: /character/ },
    { uri: "https://a.example/\u00e9", problem: /character/ },
    { uri: "javascript:alert(1)", problem: /javascript/ },
    { uri: "data:text/html,x", problem: /data/ },
    { uri: "file:///etc/passwd", problem: /file/ },
    { uri: "myapp:/cb", problem: /reverse domain/ },
    { uri: "/cb", problem: /absolute/ },
    { uri: "", problem: /absolute/ },
  ];
  for (const { uri, http, problem } of cases) {
    const found = redirectUriProblem(uri, { issuerIsHttp: http ?? false, nativeClient: false });
    if (problem === undefined) assert.equal(found, undefined, uri);
    else assert.match(found ?? "", problem, uri);
  }
});

test("redirect URIs: how a requested one is compared", () => {
  const loopback = "http://127.0.0.1:1000/cb?a=b";
  const cases: readonly [registered: string, requested: string, native: boolean, expected: boolean][] = [
    [loopback, loopback, false, true],
    [loopback, "http://127.0.0.1:2000/cb?a=b", true, true],
    [loopback, "http://127.0.0.1/cb?a=b", true, true],
    [loopback, "http://127.0.0.1:2000/cb?a=b", false, false],
    [loopback, "http://127.0.0.1:2000/cb", true, false],
    [loopback, "http://127.0.0.1:70000/cb?a=b", true, false],
    [loopback, "http://127.0.0.1:1000@evil.example/cb?a=b", true, false],
    [loopback, "https://127.0.0.1:2000/cb?a=b", true, false],
    ["http://[::1]/cb", "http://[::1]:5/cb", true, true],
    ["http://localhost/cb", "http://localhost:5/cb", true, true],
    ["http://localhost/cb", "http://localhost:5/cb", false, false],
    ["http://localhost/cb", "http://127.0.0.1/cb", true, false],
    ["https://a.example/cb", "https://a.example/cb/", true, false],
    ["https://a.example/cb", "https://a.example/%63b", true, false],
  ];
  for (const [registered, requested, native, expected] of cases) {
    assert.equal(redirectUriMatches(registered, requested, native), expected, `${registered} ~ ${requested}`);
  }
});

test("answers: the query of the redirect URI stays, and state is what was sent", () => {
  assert.equal(answerLocation("https://a.example/cb", [["code", "a b"]]), "https://a.example/cb?code=a%20b");
  assert.equal(
    answerLocation("https://a.example/cb?x=1", [["code", "c"]], "s%20"),
    "https://a.example/cb?x=1&code=c&state=s%20",
  );
  assert.equal(answerLocation("https://a.example/cb?", [["code", "c"]]), "https://a.example/cb?code=c");
  assert.equal(answerLocation("com.example.app:/cb", [["code", "c"]]), "com.example.app:/cb?code=c");
  fc.assert(
    fc.property(fc.string({ unit: "binary", minLength: 1 }), (state) => {
      const wellFormed = state.toWellFormed();
      const encoded = encodeFormText(wellFormed);
      const location = new URL(answerLocation("https://a.example/cb", [], echoableState(encoded, wellFormed)));
      assert.equal(location.searchParams.get("state"), wellFormed);
    }),
  );
});

test("a state that could break out of a header or a query is encoded anew", () => {
  for (const raw of ["a\r\nSet-Cookie: x", "a&code=stolen", "a#b", 'a"b', "a b", "é"]) {
    assert.match(echoableState(raw, raw) ?? "", /^[\x21-\x7e]+$/);
    assert.doesNotMatch(echoableState(raw, raw) ?? "", /[&#"\r\n ]/);
  }
});

test("PKCE: the vector of RFC 7636 Appendix B, and the lengths", () => {
  const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
  const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
  assert.equal(s256(verifier), challenge);
  assert.ok(verifierMatches(verifier, challenge));
  assert.ok(!verifierMatches(`${verifier}x`, challenge));
  assert.ok(isS256Challenge(challenge) && !isS256Challenge(`${challenge}=`));
  assert.ok(isVerifier("~".repeat(128)) && !isVerifier("~".repeat(129)) && !isVerifier("a".repeat(42)));
});

test("scopes: tokens once, in order; forbidden characters are no scope", () => {
  assert.deepEqual(parseScope(" b  a b "), ["b", "a"]);
  for (const text of ['"', "a\\b", "ä", "a\tb"]) assert.equal(parseScope(text), undefined, text);
});

test("descriptions hold only what RFC 6749 allows", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) =>
      /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/.test(printableDescription(text)),
    ),
  );
});
