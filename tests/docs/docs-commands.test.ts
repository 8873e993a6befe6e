// Every shell command that README and docs show is run, or says why not.
import assert from "node:assert/strict";
import { glob, readFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { DocsSession } from "./docs-session.ts";
import { shellBlocks, type ShellBlock } from "./shell-blocks.ts";

const root = path.resolve(import.meta.dirname, "../..");

const blocks = await readAllBlocks();

describe("the commands of each page", () => {
  test("are marked as run, or with the reason why not", () => {
    const unmarked = blocks.filter(({ fate }) => fate.kind === "unmarked").map(({ page, line }) => `${page}:${line}`);
    assert.deepEqual(unmarked, []);
  });

  for (const [session, sessionBlocks] of sessionsOf(blocks)) {
    test(session, async () => {
      await using docs = await DocsSession.open();
      for (const block of sessionBlocks) await docs.run(block);
    });
  }
});

async function readAllBlocks(): Promise<readonly ShellBlock[]> {
  const found: ShellBlock[] = [];
  const pages = glob(["*.md", "docs/**/*.md", "samples/**/*.md", "packages/*/*.md"], {
    cwd: root,
    exclude: ["**/node_modules/**", "**/.tulle/**"],
  });
  for await (const page of pages) found.push(...shellBlocks(page, await readFile(path.join(root, page), "utf8")));
  return found;
}

/** By page and session name, in the order of the page. */
function sessionsOf(all: readonly ShellBlock[]): ReadonlyMap<string, readonly ShellBlock[]> {
  return Map.groupBy(
    all.filter(({ fate }) => fate.kind === "run"),
    ({ page, fate }) => `${page}, ${fate.kind === "run" ? fate.session : ""}`,
  );
}
