/** What a manifest can cost whoever reads it: documents beyond each limit, and large ones that are not. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { beyondBounds } from "./document-bounds.ts";
import { loadPathsApart, maxBytesAtOnce } from "../load/load-apart.ts";
import { loadText } from "../load/load.ts";
import { parseResource } from "../load/parse-resource.ts";
import { placeOf } from "../findings/places.ts";
import { maxProblems } from "../schema/check.ts";

const service = (name: string, more = ""): string =>
  `{ apiVersion: v1, kind: Service, metadata: { name: ${name}, namespace: shop }, spec: { ports: [{ port: 80 }] ${more} } }`;
const repeat = (count: number, make: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => make(index)).join("");

// With work in the square of their size, each of these took a minute and more.
const large: readonly { readonly name: string; readonly text: string; readonly expected: readonly string[] }[] = [
  {
    name: "30,000 keys that are the same",
    text: "a: 1\n".repeat(30_000),
    expected: Array.from({ length: 20 }, () => 'the field "a" is there twice'),
  },
  { name: "100,000 directives", text: "%YAML 1.2\n".repeat(100_000), expected: [] },
  { name: "100,000 document markers", text: "---\n".repeat(100_000), expected: [] },
  {
    name: "more documents than a file may have",
    text: `---\n${service("a")}\n` + "---\n{}\n".repeat(20_000),
    expected: ["the file has more than 20000 documents; the others are not read"],
  },
  {
    name: "10,000 tags that nobody knows",
    text: repeat(10_000, (index) => `a${index}: !foo 1\n`),
    expected: Array.from({ length: 20 }, () => "a tag that nobody knows: unresolved tag: !foo"),
  },
  {
    name: "a text longer than a document may be",
    text: `a: ${"x".repeat(3 * 1024 * 1024)}`,
    expected: ["the document has 3145731 characters, the limit is 3145728"],
  },
  {
    name: "brackets in brackets",
    text: `a: ${"[".repeat(100_000)}`,
    expected: ["the document is nested too deep to be read"],
  },
  { name: "lists in lists", text: "- ".repeat(100_000), expected: ["the document is nested too deep to be read"] },
];

for (const { name, text, expected } of large) {
  test(`a manifest with ${name} is read, or refused in a few words`, () => {
    const { findings } = loadText(text, "a.yaml");
    const told = findings.map(({ message }) => message).filter((message) => !/resource|mapping/.test(message));
    assert.deepEqual(told, expected);
  });
}

test("the items of a long list keep their places", () => {
  const items = repeat(3_000, (index) => `- ${service(`a${index}`)}\n`);
  const { resources, findings } = loadText(`apiVersion: v1\nkind: List\nitems:\n${items}`, "a.yaml");
  assert.deepEqual([resources.length, findings], [3_000, []]);
  assert.deepEqual(placeOf(resources[2_999]!, ["kind"]), { file: "a.yaml", line: 3_003, column: 21 });
});

test("of 30,000 unknown fields some are told, and how many there are; an error among them is", () => {
  const unknown = repeat(30_000, (index) => `, key${index}: 1`);
  const { findings } = loadText(service("a", unknown), "a.yaml");
  assert.equal(findings.length, maxProblems + 1);
  assert.equal(findings.at(-1)!.message, `${30_000 - maxProblems} more warnings of this resource are not shown`);
  const refused = loadText(service("a", `${unknown}, selector: 7`), "a.yaml");
  assert.deepEqual(refused.resources, []);
  assert.deepEqual(
    refused.findings.filter(({ severity }) => severity === "error").map(({ path: at }) => at),
    ["spec.selector"],
  );
});

test("a key that is there twice is told of once for each place, and not again through aliases", () => {
  const text = "a: &x\n  b: 1\n  b: 2\nc: *x\nd: *x\n1: x\n'1': y\n";
  assert.deepEqual(
    loadText(text, "a.yaml").findings.map(({ message, place }) => [message, place!.line]),
    [
      ['the field "b" is there twice', 3],
      ['the field "1" is there twice', 7],
    ],
  );
});

test("JSON that is too deep or too large is recognised without following it", () => {
  let deep: unknown = 1;
  for (let level = 0; level < 500_000; level += 1) deep = [deep];
  assert.equal(beyondBounds(deep), "the document is nested deeper than 64 levels");
  assert.equal(beyondBounds(Array.from({ length: 200_001 }, () => 0)), "the document has more than 200000 values");
  assert.equal(beyondBounds(parseResource({ apiVersion: "v1", kind: "Service" })), undefined);
});

test("a large folder is read beside other work, with the same outcome", async (context) => {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-apart-"));
  context.after(() => rm(folder, { recursive: true }));
  const text = `${repeat(10_000, (index) => `# ${index}\n`)}${service(
    "a",
    repeat(10_000, (index) => `, key${index}: 1`),
  )}\n---\nkind: Servce\n`;
  assert.ok(text.length > maxBytesAtOnce);
  await writeFile(path.join(folder, "a.yaml"), text);
  let turns = 0;
  const other = setInterval(() => (turns += 1), 1);
  const { resources, findings, files } = await loadPathsApart([folder]);
  clearInterval(other);
  // Read on this thread, it would have left time for two or three.
  assert.ok(turns > 20, `${turns} turns of other work`);
  const here = loadText(text, files[0]!, { isFromFolder: true });
  assert.deepEqual({ resources, findings }, { resources: here.resources, findings: here.findings });
  assert.deepEqual(placeOf(resources[0]!, ["spec"]), placeOf(here.resources[0]!, ["spec"]));
});
