// The help names every setting and every choice, and no line needs more than 80 columns.
import assert from "node:assert/strict";
import { test } from "node:test";
import { helpText } from "./help-text.ts";
import { settings } from "./settings.ts";

test("each setting with its choices, in lines for a narrow terminal", () => {
  const text = helpText();
  for (const { name, choices = [] } of settings) {
    assert.match(text, new RegExp(`^    --${name}\\b`, "m"));
    for (const choice of choices) assert.ok(text.includes(choice), `${name} may be ${choice}`);
  }
  assert.deepEqual(
    text.split("\n").filter((line) => line.length > 79 || line !== line.trimEnd()),
    [],
  );
});
