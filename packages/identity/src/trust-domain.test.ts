// Trust domains as users write them.
import assert from "node:assert/strict";
import test from "node:test";
import { trustDomainProblem } from "./trust-domain.ts";

const rows: readonly { readonly input: string; readonly expected: RegExp | undefined }[] = [
  { input: "cluster.local", expected: undefined },
  { input: "td-1_x.example.org", expected: undefined },
  { input: "a".repeat(255), expected: undefined },
  { input: "a".repeat(256), expected: /at most 255 characters, this one has 256/ },
  { input: "", expected: /must not be empty/ },
  { input: "spiffe://cluster.local", expected: /is a SPIFFE id; the trust domain is the part after/ },
  { input: "Cluster.Local", expected: /only lower-case letters/ },
  { input: "cluster.local/ns", expected: /only lower-case letters/ },
  { input: "cluster.local:443", expected: /only lower-case letters/ },
  { input: "cluster.local\n", expected: /only lower-case letters/ },
];

for (const { input, expected } of rows) {
  test(`the trust domain ${JSON.stringify(input.slice(0, 40))}`, () => {
    const problem = trustDomainProblem(input);
    if (expected === undefined) assert.equal(problem, undefined);
    else assert.match(problem ?? "", expected);
  });
}
