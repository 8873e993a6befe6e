// That files which share a process still run all of their tests, and that a failure names its own file.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { batchProgram, testBatches } from "./test-batches.ts";

/** One hook for all files would count to two. */
const hooks = `import assert from "node:assert/strict";
import { before, test } from "node:test";
let begun = 0;
before(() => { begun += 1; });
`;
const plain = 'import { test } from "node:test";\n';

async function withFiles(files: Readonly<Record<string, string>>, use: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(path.join(tmpdir(), "tulle-batches-"));
  try {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(path.dirname(path.join(root, name)), { recursive: true });
      await writeFile(path.join(root, name), text);
    }
    await use(root);
  } finally {
    await rm(root, { recursive: true });
  }
}

test("what needs a process of its own has one", async () => {
  const files = {
    "packages/a/one.test.ts": plain,
    "packages/a/two.test.ts": plain,
    "packages/a/clock.test.ts": `${plain}mock.timers.enable();\n`,
    "packages/a/hooks.test.ts": `${plain}after(() => {});\n`,
    "packages/a/environment.test.ts": `${plain}process.env["HOME"] = "/";\n`,
    "packages/a/programs.test.ts": `${plain}await startProcess(process.execPath);\n`,
    "packages/b/other.test.ts": plain,
    "tests/docs/one.test.ts": plain,
    "tests/docs/runs.test.ts": `${plain}await pageTests("first");\n`,
    "tests/docs/two.test.ts": plain,
    "tests/e2e/shop.test.ts": plain,
    "tests/parity/one.test.ts": plain,
    "tests/parity/two.test.ts": plain,
    "tests/parity/whole.test.ts": `${plain}await ShopInstance.start();\n`,
    "tests/e2e/looks.test.ts": `${plain}useRunningShop("Tulle's proxy", take);\n`,
    "tests/e2e/routes.test.ts": `${plain}routingTests({ mode: "loopback", proxy: "tulle" });\nafter(() => {});\n`,
    "tests/e2e/signs-in.test.ts": `${plain}useRunningShop("whole, Tulle's proxy", take);\n`,
  };
  await withFiles(files, async (root) => {
    const batches = await testBatches(Object.keys(files).sort(), root);
    assert.deepEqual(
      batches.map(({ files: of }) => of).sort(([a], [b]) => a!.localeCompare(b!)),
      [
        ["packages/a/clock.test.ts"],
        ["packages/a/environment.test.ts"],
        ["packages/a/hooks.test.ts", "packages/a/programs.test.ts"],
        ["packages/a/one.test.ts", "packages/a/two.test.ts"],
        ["packages/b/other.test.ts"],
        ["tests/docs/one.test.ts", "tests/docs/two.test.ts"],
        ["tests/docs/runs.test.ts"],
        ["tests/e2e/looks.test.ts", "tests/e2e/routes.test.ts"],
        ["tests/e2e/shop.test.ts"],
        ["tests/e2e/signs-in.test.ts"],
        ["tests/parity/one.test.ts", "tests/parity/two.test.ts"],
        ["tests/parity/whole.test.ts"],
      ],
    );
  });
});

test("a long list is cut into batches of about one length, and nothing is lost", async () => {
  const names = Array.from({ length: 120 }, (_, index) => `packages/a/${String(index).padStart(3, "0")}.test.ts`);
  await withFiles(Object.fromEntries(names.map((name) => [name, plain])), async (root) => {
    const batches = await testBatches(names, root);
    assert.deepEqual(
      batches.map(({ files }) => files.length),
      [40, 40, 40],
    );
    assert.deepEqual(
      batches.flatMap(({ files }) => files),
      names,
    );
  });
});

test("a batch runs every file, and a failure names the file that it stands in", async () => {
  const files = {
    "packages/a/good.test.ts": `${plain}test("good", () => {});\n`,
    "packages/a/bad.test.ts": `${plain}test("bad", () => { throw new Error("broken"); });\n`,
    "packages/a/last.test.ts": `${hooks}test("last", () => assert.equal(begun, 1));\n`,
    "packages/a/not-loaded.test.ts": 'throw new Error("cannot be loaded");\n',
    "packages/a/later.test.ts": `${hooks}test("later", () => assert.equal(begun, 1));\n`,
  };
  await withFiles(files, async (root) => {
    const program = path.join(root, "batch.test.mjs");
    await writeFile(program, batchProgram({ name: "a", files: Object.keys(files) }, root));
    const ran = spawnSync(process.execPath, ["--test", "--test-reporter=spec", program], {
      encoding: "utf8",
      // The runner tells its children by this that they are tests.
      env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    });
    assert.match(ran.stdout, /✔ good[^]*✖ bad[^]*✔ last[^]*✖ packages\/a\/not-loaded.test.ts[^]*✔ later/);
    assert.match(ran.stdout, /test at .*bad\.test\.ts:2:1/);
    assert.equal(ran.status, 1);
  });
});
