/** Whom labels choose: by a bare selector, and as the workloads behind a Service. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isBehind, selects } from "./label-selector.ts";

const labels = { app: "catalog", version: "v1" };

const rows = [
  { name: "one label of several", selector: { app: "catalog" }, selected: true, behind: true },
  { name: "all labels", selector: labels, selected: true, behind: true },
  { name: "another value", selector: { app: "orders" }, selected: false, behind: false },
  { name: "one of two", selector: { app: "catalog", version: "v2" }, selected: false, behind: false },
  { name: "a label that is not there", selector: { tier: "" }, selected: false, behind: false },
  { name: "an empty selector", selector: {}, selected: true, behind: false },
];

for (const { name, selector, selected, behind } of rows) {
  test(name, () => {
    assert.equal(selects(selector, labels), selected);
    const service = { metadata: { namespace: "shop" }, spec: { selector } };
    assert.equal(isBehind(service, { namespace: "shop", labels }), behind);
    assert.equal(isBehind(service, { namespace: "other", labels }), false);
  });
}

test("a Service without a selector", () => {
  assert.equal(isBehind({ metadata: { namespace: "shop" }, spec: {} }, { namespace: "shop", labels }), false);
});
