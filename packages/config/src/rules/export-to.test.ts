// Whom `exportTo` names, and the annotation of Services that says the same.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseResource } from "../load/parse-resource.ts";
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
  assert.equal(serviceExportTo({ "networking.istio.io/exportTo": "" }), undefined);
});

test("some namespace sees both", () => {
  assert.equal(exportsOverlap(undefined, undefined), true);
  assert.equal(exportsOverlap(undefined, ["a"]), true);
  assert.equal(exportsOverlap(undefined, []), false);
  assert.equal(exportsOverlap([], undefined), false);
  assert.equal(exportsOverlap(["a"], ["b", "a"]), true);
  assert.equal(exportsOverlap(["a"], ["b"]), false);
});

for (const { annotation, expected } of [
  { annotation: "", expected: [] },
  { annotation: "., bank", expected: [] },
  { annotation: "*", expected: [] },
  { annotation: "~", expected: [] },
  {
    annotation: "shop;bank",
    expected: [
      /^warning IST0125 metadata.annotations\["networking.istio.io\/exportTo"\] "shop;bank" is not .*no namespace sees/,
    ],
  },
  { annotation: "a,,b", expected: [/^warning IST0125 .* "" is not /] },
  { annotation: "**", expected: [/"\*\*" is not/] },
]) {
  test(`the annotation "${annotation}" of a Service`, () => {
    const { resource, findings } = parseResource({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "a", annotations: { "networking.istio.io/exportTo": annotation } },
      spec: { ports: [{ port: 80 }] },
    });
    assert.ok(resource !== undefined, "no manifest is refused that Istio takes");
    const lines = findings.map(({ severity, code, path, message }) => `${severity} ${code} ${path} ${message}`);
    assert.equal(lines.length, expected.length, lines.join("\n"));
    for (const [index, line] of lines.entries()) assert.match(line, expected[index]!);
  });
}
