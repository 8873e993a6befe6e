// What an operator writes of values: Helm's way of setting one, how they are laid over each other, and what is wrong.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSet, valuesOf } from "./check-values.ts";
import type { Fields } from "./values.ts";

const sets: readonly { readonly text: string; readonly expected: Fields }[] = [
  { text: "a.b=c", expected: { a: { b: "c" } } },
  { text: "a=1,b=true,c=null,d=007,e=-3,f=1.5", expected: { a: 1, b: true, c: null, d: "007", e: -3, f: "1.5" } },
  { text: "a.b=1,a.c=2", expected: { a: { b: 1, c: 2 } } },
  { text: "a={x,y},b={}", expected: { a: ["x", "y"], b: [] } },
  { text: "a[1].b=c", expected: { a: [null, { b: "c" }] } },
  { text: String.raw`a.kubernetes\.io/os=linux`, expected: { a: { "kubernetes.io/os": "linux" } } },
  { text: String.raw`a=x\,y=z`, expected: { a: "x,y=z" } },
  { text: "a=", expected: { a: "" } },
];

for (const { text, expected } of sets) {
  test(`--set ${text}`, () => assert.deepEqual(parseSet(text), expected));
}

test("--set without a value is refused", () => {
  assert.throws(() => parseSet("a.b"), /"a\.b" is no <path>=<value>/);
  assert.throws(() => parseSet("a=1,,b=2"), /is no <path>=<value>/);
});

test("later values win, mappings are laid over each other, and null takes a default away", () => {
  const { values, problems } = valuesOf([
    { tulled: { resources: { limits: { cpu: "1" } }, replicaCount: 3 } },
    { tulled: { resources: { requests: null }, replicaCount: 1 } },
  ]);
  assert.deepEqual(problems, []);
  assert.deepEqual(values["tulled"]?.["resources"], { limits: { cpu: "1" } });
  assert.equal(values["tulled"]?.["replicaCount"], 1);
});

const wrong: readonly { readonly values: Fields; readonly says: RegExp }[] = [
  { values: { global: { hubb: "x" } }, says: /^global\.hubb: there is no such value; did you mean global\.hub\?$/ },
  { values: { tulled: "x" }, says: /^tulled: it must be a mapping$/ },
  { values: { gateway: { replicaCount: -1 } }, says: /^gateway\.replicaCount: it must be a whole number, and not -1$/ },
  { values: { gateway: { enabled: "true" } }, says: /^gateway\.enabled: it must be true or false, and not "true"$/ },
  { values: { tulled: { revision: null } }, says: /^tulled\.revision: it must be a text$/ },
  { values: { tulled: { tolerations: {} } }, says: /^tulled\.tolerations: it must be a list, and not \{\}$/ },
];

for (const { values, says } of wrong) {
  test(`refused: ${JSON.stringify(values)}`, () => assert.match(valuesOf([values]).problems.join("\n"), says));
}

test("names of prototypes are no values", () => {
  const given = JSON.parse('{"__proto__": {"polluted": true}, "tulled": {"constructor": 1}}') as Fields;
  assert.equal(valuesOf([given]).problems.length, 2);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});
