// Each golden case through the stages snapshot, scope and translate. UPDATE_GOLDEN=1 writes the files anew; read the
// difference before it is committed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { goldenCaseNames, makeGoldenCase, storedFiles, writeGoldenFile } from "./golden-cases.ts";

for (const name of await goldenCaseNames()) {
  test(`golden case ${name}`, async () => {
    const { made } = await makeGoldenCase(name);
    if (process.env["UPDATE_GOLDEN"] === "1") {
      await Promise.all([...made].map(([file, content]) => writeGoldenFile(name, file, content)));
    }
    const stored = await storedFiles(name);
    assert.deepEqual([...stored.keys()].sort(), [...made.keys()].sort(), "one file for each outcome");
    for (const [file, content] of made) {
      assert.equal(stored.get(file), content, `${name}/${file} differs: UPDATE_GOLDEN=1 writes it anew`);
    }
  });
}
