// What `npm test -- --affected` runs, on a repository of a few lines; and that a name without a test says so.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { test } from "node:test";
import { affectedTests } from "./affected-tests.ts";

const repository = {
  files: [
    { path: "packages/a/src/index.ts", text: 'export { one } from "./one.ts";\n' },
    { path: "packages/a/src/one.ts", text: 'import type { Two } from "./two.ts";\n' },
    { path: "packages/a/src/two.ts", text: "" },
    { path: "packages/a/src/one.test.ts", text: 'import { one } from "./one.ts";\n' },
    { path: "packages/a/src/alone.test.ts", text: '// Not "packages/a/src/one.ts".\n' },
    { path: "packages/b/src/main.ts", text: 'const { one } = await import("@tulle/a");\n' },
    { path: "tests/e2e/shop.test.ts", text: 'import { begin } from "./shop.ts";\n' },
    {
      path: "tests/e2e/shop.ts",
      text: 'path.join(root, "packages", "b", "src", "main.ts");\npath.join(root, "samples/shop");\n',
    },
    { path: "tests/docs/docs.test.ts", text: 'glob(["*.md", "docs/**/*.md"]);\n' },
    { path: "samples/shop/web.yaml", text: "" },
    { path: "docs/page.md", text: "" },
    { path: "README.md", text: "" },
    { path: "package-lock.json", text: "" },
  ],
  manifests: [{ path: "packages/a/package.json", name: "@tulle/a", exports: { ".": "./src/index.ts" } }],
};
const tests = repository.files.map((file) => file.path).filter((name) => name.endsWith(".test.ts"));
const [one, alone, shop, docs] = tests as [string, string, string, string];

const cases: readonly { name: string; changed: string; expected: readonly string[] }[] = [
  {
    name: "a module, through imports, a package's entry and a program",
    changed: "packages/a/src/one.ts",
    expected: [one, shop],
  },
  { name: "types count", changed: "packages/a/src/two.ts", expected: [one, shop] },
  { name: "a test alone", changed: alone, expected: [alone] },
  { name: "a folder that a string names", changed: "samples/shop/web.yaml", expected: [shop] },
  { name: "a new file in such a folder", changed: "samples/shop/new.yaml", expected: [shop] },
  { name: "a pattern", changed: "docs/page.md", expected: [docs] },
  { name: "a pattern for the top folder", changed: "README.md", expected: [docs] },
  { name: "what no test sees", changed: "LICENSE.txt.bak/x", expected: [] },
  { name: "what all stand on", changed: "package-lock.json", expected: tests },
];

for (const { name, changed, expected } of cases) {
  test(name, () => assert.deepEqual(affectedTests(tests, new Set([changed]), repository), expected));
}

test("a name that no test file has says so", () => {
  const ran = spawnSync(process.execPath, [path.join(import.meta.dirname, "test.ts"), "no-such-thing"], {
    encoding: "utf8",
  });
  assert.equal(ran.status, 2);
  assert.equal(ran.stdout, 'no such path, and no test file\'s path holds "no-such-thing"\n');
});
