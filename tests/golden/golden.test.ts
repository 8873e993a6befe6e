// Each golden case through the stages snapshot, scope and translate, by way of one cache that all cases before it have
// filled: what a proxy gets does not depend on what others got. UPDATE_GOLDEN=1 writes the files anew; read the
// difference before it is committed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { TranslationCache } from "@tulle/control-plane/stages";
import { goldenCaseNames, makeGoldenCase, storedFiles, writeGoldenFile } from "./golden-cases.ts";

const cache = new TranslationCache("local");

for (const name of await goldenCaseNames()) {
  test(`golden case ${name}`, async () => {
    const { made } = await makeGoldenCase(name, cache);
    if (process.env["UPDATE_GOLDEN"] === "1") {
      const { made: alone } = await makeGoldenCase(name, new TranslationCache("local"));
      await Promise.all([...alone].map(([file, content]) => writeGoldenFile(name, file, content)));
    }
    const stored = await storedFiles(name);
    assert.deepEqual([...stored.keys()].sort(), [...made.keys()].sort(), "one file for each outcome");
    for (const [file, content] of made) {
      assert.equal(stored.get(file), content, `${name}/${file} differs: UPDATE_GOLDEN=1 writes it anew`);
    }
  });
}
