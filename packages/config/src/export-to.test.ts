// Whom `exportTo` names, and the annotation of Services that says the same.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Exported, exportedTo, exportsOverlap, serviceExportTo } from "./export-to.ts";

const rows: readonly {
  readonly name: string;
  readonly written: readonly string[] | undefined;
  readonly meshDefault?: readonly string[];
  readonly expected: Exported;
}[] = [
  { name: "nothing: all", written: undefined, expected: undefined },
  { name: "an empty list: all", written: [], expected: undefined },
  { name: "all", written: ["*"], expected: undefined },
  { name: "all, and some", written: ["a", "*"], expected: undefined },
  { name: "its own", written: ["."], expected: ["shop"] },
  { name: "its own, by both names, and another", written: ["shop", ".", "blog"], expected: ["blog", "shop"] },
  { name: "nobody", written: ["~"], expected: [] },
  { name: "the mesh says its own", written: undefined, meshDefault: ["."], expected: ["shop"] },
  { name: "the mesh says its own, the resource all", written: ["*"], meshDefault: ["."], expected: undefined },
];

for (const { name, written, meshDefault, expected } of rows) {
  test(`exportTo: ${name}`, () => assert.deepEqual(exportedTo(written, "shop", meshDefault), expected));
}

test("the annotation of a Service", () => {
  assert.deepEqual(serviceExportTo({ "networking.istio.io/exportTo": "a, ." }), ["a", "."]);
  assert.deepEqual(serviceExportTo({ "networking.istio.io/exportTo": "a", "networking.tulle.io/exportTo": "b" }), [
    "b",
  ]);
  assert.equal(serviceExportTo({ other: "a" }), undefined);
  assert.equal(serviceExportTo(undefined), undefined);
});

test("some namespace sees both", () => {
  assert.equal(exportsOverlap(undefined, undefined), true);
  assert.equal(exportsOverlap(undefined, ["a"]), true);
  assert.equal(exportsOverlap(undefined, []), false);
  assert.equal(exportsOverlap([], undefined), false);
  assert.equal(exportsOverlap(["a"], ["b", "a"]), true);
  assert.equal(exportsOverlap(["a"], ["b"]), false);
});
