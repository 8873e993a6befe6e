// Which texts are a workload's SPIFFE id, and that text and parts never disagree.
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { parseSpiffeId, type SpiffeId, spiffeIdText } from "./spiffe-id.ts";

const long = "a".repeat(256);

const good: readonly { readonly input: string; readonly expected: SpiffeId }[] = [
  {
    input: "spiffe://cluster.local/ns/shop/sa/catalog",
    expected: { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "catalog" },
  },
  {
    input: "spiffe://td_1-x.y/ns/a/sa/b.c-d.0",
    expected: { trustDomain: "td_1-x.y", namespace: "a", serviceAccount: "b.c-d.0" },
  },
];

for (const { input, expected } of good) {
  test(`${input} is a SPIFFE id`, () => assert.deepEqual(parseSpiffeId(input), expected));
}

const bad: readonly string[] = [
  "",
  "cluster.local/ns/shop/sa/catalog",
  "https://cluster.local/ns/shop/sa/catalog",
  "SPIFFE://cluster.local/ns/shop/sa/catalog",
  "spiffe://Cluster.local/ns/shop/sa/catalog",
  "spiffe:///ns/shop/sa/catalog",
  "spiffe://cluster.local:443/ns/shop/sa/catalog",
  "spiffe://user@cluster.local/ns/shop/sa/catalog",
  `spiffe://${long}/ns/shop/sa/catalog`,
  `spiffe://cluster.local/ns/${"a".repeat(64)}/sa/catalog`,
  `spiffe://cluster.local/ns/shop/sa/${"a".repeat(254)}`,
  "spiffe://cluster.local/ns//sa/catalog",
  "spiffe://cluster.local/ns/shop/sa/",
  "spiffe://cluster.local/ns/shop/sa/catalog/",
  "spiffe://cluster.local/ns/shop/sa/catalog/x",
  "spiffe://cluster.local/ns/shop/sa/../catalog",
  "spiffe://cluster.local/ns/shop/sa/a..b",
  "spiffe://cluster.local/ns/shop/sa/-a",
  "spiffe://cluster.local/ns/sh.op/sa/catalog",
  "spiffe://cluster.local/ns/shop/sa/cat%61log",
  "spiffe://cluster.local/ns/shop/sa/catalog?x",
  "spiffe://cluster.local/ns/shop/sa/catalog#x",
  "spiffe://cluster.local/ns/shop/sa/catalog\n",
  "spiffe://cluster.local/ns/shop/sa/Catalog",
];

for (const input of bad) {
  test(`${JSON.stringify(input.slice(0, 80))} is no SPIFFE id`, () => assert.equal(parseSpiffeId(input), undefined));
}

test("any parts either make a text that says the same, or none", () => {
  const part = fc.string({ unit: fc.constantFrom("a", "b", "-", ".", "/", "_", ":", "%", "A"), maxLength: 5 });
  fc.assert(
    fc.property(part, part, part, (trustDomain, namespace, serviceAccount) => {
      const id = { trustDomain, namespace, serviceAccount };
      let text: string;
      try {
        text = spiffeIdText(id);
      } catch (error) {
        assert.ok(error instanceof TypeError);
        return;
      }
      assert.deepEqual(parseSpiffeId(text), id);
    }),
    { numRuns: 2000 },
  );
});
