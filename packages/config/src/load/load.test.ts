/** Files and folders as a whole: what is read, in which order, and with which places. */
import assert from "node:assert/strict";
import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadPaths, loadText } from "./load.ts";
import { placeOf } from "../findings/places.ts";
import { renderFinding } from "../findings/render-finding.ts";

test("load: text that is not UTF-8", () => {
  const { findings } = loadText(Uint8Array.of(0x61, 0xff, 0xfe), "m.yaml");
  assert.deepEqual(
    findings.map((finding) => renderFinding(finding)),
    ["Error [TUL0002] (m.yaml:1:1) the file is not UTF-8 text\n  Save it as UTF-8."],
  );
});

test("load: a resource keeps defaults, enum spelling and places", () => {
  const { resources } = loadText(
    "# first line\napiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n    - port: 80\n",
    "web.yaml",
  );
  const [service] = resources;
  assert.deepEqual(service, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace: "default" },
    spec: { type: "ClusterIP", ports: [{ port: 80, protocol: "TCP" }] },
  });
  assert.deepEqual(placeOf(service), { file: "web.yaml", line: 2, column: 1 });
  assert.deepEqual(placeOf(service, ["spec", "ports", 0, "port"]), { file: "web.yaml", line: 8, column: 7 });
  // What is not written has the place of what is around it.
  assert.deepEqual(placeOf(service, ["spec", "ports", 0, "protocol"]), { file: "web.yaml", line: 8, column: 7 });
  assert.deepEqual(placeOf(service, ["spec", "type"]), { file: "web.yaml", line: 6, column: 1 });
});

test("load: a folder stands for its own manifests, by name; other files and sub-folders are left alone", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tulle-config-"));
  t.after(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "rules"));
  const account = (name: string): string => `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"${name}"}}`;
  await writeFile(join(folder, "b.yml"), account("b"));
  await writeFile(join(folder, "a.json"), account("a"));
  await writeFile(join(folder, "c.yaml"), `a: "\n`);
  await writeFile(join(folder, "package.json"), '{"name":"x"}');
  await writeFile(join(folder, "README.md"), "nothing");
  await writeFile(join(folder, "rules", "d.yaml"), account("d"));
  const loaded = await loadPaths([folder, join(folder, "missing.yaml"), join(folder, "rules", "d.yaml")]);
  assert.deepEqual(
    loaded.resources.map(({ metadata }) => metadata.name),
    ["a", "b", "d"],
  );
  assert.deepEqual(
    loaded.findings.map((finding) => renderFinding(finding).replaceAll(folder, "DIR")),
    [
      "Error [TUL0002] (DIR/missing.yaml:1:1) there is no file or folder DIR/missing.yaml",
      "Error [TUL0002] (DIR/c.yaml:1:4) a quoted text does not end\n  Add the closing quote.",
      "Info [TUL0002] (DIR/package.json:1:1) this is no resource (it has neither apiVersion nor kind) and was left out",
    ],
  );
});
