// Every case of the table, as the golden file has it, and as a webhook's patch makes it of the pod. UPDATE_GOLDEN=1
// writes the file anew; read the difference before it is committed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { injectPod, defaultValues } from "@tulle/kubernetes";
import { applyPatch } from "./apply-patch.ts";
import { injectedCase, makeGolden, podOf, readGolden, writeGolden } from "./golden-injection.ts";
import { injectionCases } from "./injection-cases.ts";

if (process.env["UPDATE_GOLDEN"] === "1") await writeGolden(makeGolden(injectionCases));
const stored = await readGolden();
const made = makeGolden(injectionCases);

test("the plain pod is injected as the golden file has it", () => assert.deepEqual(made.plain, stored.plain));

test("no case is without its golden difference, nor the other way round", () => {
  assert.deepEqual(Object.keys(made.differences), Object.keys(stored.differences));
  assert.ok(injectionCases.length >= 60);
});

for (const [name, difference] of Object.entries(made.differences)) {
  test(`from the plain pod differs as it should: ${name}`, () =>
    assert.deepEqual(difference, stored.differences[name]));
}

for (const input of injectionCases) {
  test(`the patch makes what is injected: ${input.name}`, () => {
    const { patch, pod } = injectedCase(input);
    assert.deepEqual(applyPatch(podOf(input), patch), pod);
  });
}

/** Templates that bring no proxy are laid over a pod again. */
for (const input of injectionCases.filter(({ name }) => name !== "template-alone")) {
  test(`not injected twice: ${input.name}`, () => {
    const again = injectPod({
      pod: injectedCase(input).pod,
      namespace: { name: "shop", labels: { "tulle-injection": "enabled" } },
      mesh: {},
      values: defaultValues("1.0.0"),
    });
    assert.equal(again.outcome, "passed", JSON.stringify(again));
  });
}
