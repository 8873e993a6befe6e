// The quick answers are those that Node would give, and what Node should answer reaches it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { quickResolve } from "./quick-resolve.ts";

const parentURL = "file:///tulle/packages/proxy/src/compile/compile.ts";
const context = { conditions: ["node", "import"], importAttributes: {}, parentURL };

const cases = [
  { name: "a file beside", specifier: "./slot.ts", url: "file:///tulle/packages/proxy/src/compile/slot.ts", asked: 0 },
  { name: "a file above", specifier: "../slot.ts", url: "file:///tulle/packages/proxy/src/slot.ts", asked: 0 },
  { name: "a builtin module", specifier: "node:net", url: "node:net", asked: 0 },
  { name: "a package, once", specifier: "@tulle/xds", url: "asked:@tulle/xds", asked: 1 },
  { name: "another kind of file", specifier: "./names.json", url: "asked:./names.json", asked: 2 },
  { name: "an absolute place", specifier: "file:///elsewhere.ts", url: "asked:file:///elsewhere.ts", asked: 2 },
];

for (const { name, specifier, url, asked } of cases) {
  test(`resolves ${name}`, () => {
    let questions = 0;
    const resolve = quickResolve("file:///tulle/packages/");
    const next: Parameters<typeof resolve>[2] = (text) => {
      questions += 1;
      return { url: `asked:${text}`, format: "module" };
    };
    for (let time = 0; time < 2; time++) assert.equal(resolve(specifier, context, next).url, url);
    assert.equal(questions, asked);
  });
}

test("asks Node for what others import, and once for each way of importing", () => {
  const asked: string[] = [];
  const resolve = quickResolve("file:///tulle/packages/");
  const next: Parameters<typeof resolve>[2] = (text) => {
    asked.push(text);
    return { url: `asked:${text}` };
  };
  resolve("./slot.ts", { ...context, parentURL: "file:///tulle/node_modules/other/index.ts" }, next);
  resolve("@tulle/xds", context, next);
  resolve("@tulle/xds", { ...context, conditions: ["node", "require"] }, next);
  resolve("@tulle/xds", { ...context, parentURL: "file:///tulle/packages/agent/src/index.ts" }, next);
  assert.deepEqual(asked, ["./slot.ts", "@tulle/xds", "@tulle/xds", "@tulle/xds"]);
});
