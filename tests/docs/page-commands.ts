// Runs the shell commands that README and docs show: those of the pages that a newcomer reads first in
// docs-commands.test.ts, those of all others in docs-commands.long.test.ts.
import assert from "node:assert/strict";
import { glob, readFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { DocsSession, startsServer } from "./docs-session.ts";
import { shellBlocks, type ShellBlock } from "./shell-blocks.ts";

const root = path.resolve(import.meta.dirname, "../..");

/** A shop costs twelve seconds of a core to start: sessions of this name, on whatever page, have one for all. */
const sharedShop = "shared shop";

/** Sessions of this name need a cluster: tests/kubernetes/docs.kubernetes-long.test.ts runs them. */
const onCluster = "cluster";

/** A page that leaves something is told so after this; one that leaves nothing does not wait. */
const undoneWithinMs = 30_000;

/** What a newcomer types, in `npm test`; each of them costs seconds of a core. */
const firstPages: ReadonlySet<string> = new Set(["README.md", "docs/quick-start.md"]);

export type Pages = "first" | "others" | "on a cluster";

/** The tests of a suite. */
export async function pageTests(which: Pages): Promise<void> {
  const blocks = (await readAllBlocks()).filter(({ page, fate }) => {
    if (fate.kind === "run" && fate.session === onCluster) return which === "on a cluster";
    return which !== "on a cluster" && firstPages.has(page) === (which === "first");
  });

  if (which !== "on a cluster")
    test(`${sharedShop}: pages that undo what they change`, async (t) => {
      await using docs = await DocsSession.open();
      let untouched: readonly string[] | undefined;
      const endings: ShellBlock[] = [];
      for (const visit of visitsOf(blocks)) {
        await t.test(`${visit[0]!.page}:${visit[0]!.line}`, async () => {
          const ending = visit.findIndex(endsShop);
          const [stay, leave] = ending < 0 ? [visit, []] : [visit.slice(0, ending), visit.slice(ending)];
          endings.push(...leave);
          for (const block of stay) {
            await docs.run(block);
            untouched ??= await docs.resources();
          }
          // What the mesh provides by itself comes back a moment after a page's own was deleted.
          const asFound = async () => {
            assert.deepEqual(await docs.resources(), untouched);
            return true;
          };
          await waitFor(asFound, { what: "the shop to be as the page found it", timeoutMs: undoneWithinMs });
        });
      }
      await t.test("the end, when no page needs it any more", async () => {
        for (const block of endings) await docs.run(block);
      });
    });

  for (const [session, sessionBlocks] of sessionsOf(blocks)) {
    test(session, async () => {
      await using docs = await DocsSession.open();
      for (const block of sessionBlocks) await docs.run(block);
    });
  }
}

/** Of all pages. */
export async function readAllBlocks(): Promise<readonly ShellBlock[]> {
  const found: ShellBlock[] = [];
  const pages = glob(["*.md", "docs/**/*.md", "samples/**/*.md", "packages/*/*.md"], {
    cwd: root,
    exclude: ["**/node_modules/**", "**/.tulle/**"],
  });
  for await (const page of pages) found.push(...shellBlocks(page, await readFile(path.join(root, page), "utf8")));
  return found.sort((a, b) => (a.page === b.page ? a.line - b.line : a.page < b.page ? -1 : 1));
}

/** By page and session name, in the order of the page. */
function sessionsOf(all: readonly ShellBlock[]): ReadonlyMap<string, readonly ShellBlock[]> {
  return Map.groupBy(
    all.filter(({ fate }) => fate.kind === "run" && fate.session !== sharedShop),
    ({ page, fate }) => `${page}, ${fate.kind === "run" ? fate.session : ""}`,
  );
}

function endsShop({ commands }: ShellBlock): boolean {
  return /^\.\/tulle down\b/m.test(commands);
}

/** The blocks of the shared shop, a list for each that starts it: what a reader does who begins there. */
function visitsOf(all: readonly ShellBlock[]): readonly (readonly ShellBlock[])[] {
  const visits: ShellBlock[][] = [];
  for (const block of all) {
    if (block.fate.kind !== "run" || block.fate.session !== sharedShop) continue;
    if (startsServer(block)) {
      visits.push([block]);
      continue;
    }
    const visit = visits.at(-1);
    assert.ok(
      visit?.[0]?.page === block.page,
      `${block.page}:${block.line} has no block before it that starts the shop`,
    );
    visit.push(block);
  }
  return visits;
}
