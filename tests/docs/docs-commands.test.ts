// Every shell command that README and docs show is run, or says why not. Here run those of the pages that a newcomer
// reads first; the others: docs-commands.long.test.ts.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pageTests, readAllBlocks } from "./page-commands.ts";

describe("the commands of each page", async () => {
  test("are marked as run, or with the reason why not", async () => {
    const unmarked = (await readAllBlocks()).filter(({ fate }) => fate.kind === "unmarked");
    assert.deepEqual(
      unmarked.map(({ page, line }) => `${page}:${line}`),
      [],
    );
  });

  await pageTests("first");
});
