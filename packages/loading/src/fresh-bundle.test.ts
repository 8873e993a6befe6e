// When a bundle may be run in the place of the sources: while they say what it says, and nobody else can have written
// it.
import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../../tests/tools/temporary-folder.ts";
import { bundleFolder, freshProgram, manifestName, statusesOf, type BundleManifest } from "./index.ts";

const isRoot = process.getuid?.() === 0;
const somebody = 12_345;
const source = "packages/a/src/main.ts";

class Clone {
  readonly root = temporaryFolder("tulle-bundle-");
  readonly source = path.join(this.root, source);
  readonly folder = bundleFolder(this.root);
  readonly bundle = path.join(this.folder, "one");
  readonly manifest = path.join(this.folder, manifestName);

  constructor() {
    mkdirSync(path.dirname(this.source), { recursive: true });
    writeFileSync(this.source, "old");
    mkdirSync(this.bundle, { recursive: true });
    for (const folder of [this.folder, this.bundle]) chmodSync(folder, 0o755);
    for (const file of ["a.mjs", "chunk.mjs"]) this.write(path.join(this.bundle, file), "");
    this.writeManifest({});
  }

  writeManifest(changed: Partial<BundleManifest>): void {
    const sources = [source, "packages/a/src/not-there.ts"];
    const statuses = statusesOf(this.root, sources);
    const files = ["a.mjs", "chunk.mjs"];
    this.write(this.manifest, JSON.stringify({ root: this.root, folder: "one", files, sources, statuses, ...changed }));
  }

  write(file: string, text: string): void {
    writeFileSync(file, text);
    chmodSync(file, 0o644);
  }
}

interface Case {
  readonly name: string;
  readonly change: (clone: Clone) => void;
  readonly fresh?: true;
}

const cases: readonly Case[] = [
  { name: "as it was made", change: () => undefined, fresh: true },
  {
    name: "with a source that was not there before",
    change: ({ root }) => writeFileSync(`${root}/packages/a/src/not-there.ts`, ""),
  },
  { name: "with a source that has gone", change: (clone) => rmSync(clone.source) },
  { name: "with a longer source", change: (clone) => writeFileSync(clone.source, "older") },
  {
    name: "with a source of the same size and time",
    change: (clone) => {
      const { atime, mtime } = statSync(clone.source);
      writeFileSync(clone.source, "new");
      utimesSync(clone.source, atime, mtime);
    },
  },
  {
    name: "with another file of the same size and time in a source's place",
    change: (clone) => {
      const { atime, mtime } = statSync(clone.source);
      writeFileSync(`${clone.source}.new`, "new");
      utimesSync(`${clone.source}.new`, atime, mtime);
      renameSync(`${clone.source}.new`, clone.source);
    },
  },
  { name: "in a clone that was moved", change: (clone) => clone.writeManifest({ root: "/elsewhere" }) },
  { name: "without a bundle", change: (clone) => rmSync(clone.folder, { recursive: true }) },
  { name: "with half of a manifest", change: (clone) => clone.write(clone.manifest, '{"root":') },
  { name: "without a part of the bundle", change: (clone) => rmSync(path.join(clone.bundle, "chunk.mjs")) },
  { name: "without that program", change: (clone) => clone.writeManifest({ files: ["chunk.mjs"] }) },
  { name: "with a manifest that a group may write", change: (clone) => chmodSync(clone.manifest, 0o664) },
  { name: "with a folder that all may write", change: (clone) => chmodSync(clone.folder, 0o757) },
  { name: "with a bundle that a group may write", change: (clone) => chmodSync(clone.bundle, 0o775) },
  { name: "with a part that all may write", change: (clone) => chmodSync(path.join(clone.bundle, "chunk.mjs"), 0o666) },
  {
    name: "with a bundle that lies elsewhere",
    change: (clone) => {
      renameSync(clone.bundle, path.join(clone.root, "elsewhere"));
      symlinkSync(path.join(clone.root, "elsewhere"), clone.bundle);
    },
  },
  {
    name: "with a part that lies elsewhere",
    change: (clone) => {
      renameSync(path.join(clone.bundle, "chunk.mjs"), path.join(clone.root, "chunk.mjs"));
      symlinkSync(path.join(clone.root, "chunk.mjs"), path.join(clone.bundle, "chunk.mjs"));
    },
  },
  // Only root can give a file away.
  ...(isRoot
    ? (
        [
          ["a manifest", (clone) => clone.manifest],
          ["a folder", (clone) => clone.folder],
          ["a bundle", (clone) => clone.bundle],
          ["a part", (clone) => path.join(clone.bundle, "chunk.mjs")],
        ] satisfies [string, (clone: Clone) => string][]
      ).map(([what, file]) => ({
        name: `with ${what} of another user`,
        change: (clone: Clone) => chownSync(file(clone), somebody, somebody),
      }))
    : []),
];

for (const { name, change, fresh } of cases) {
  test(`${name} the ${fresh ? "bundle is" : "sources are"} run`, () => {
    const clone = new Clone();
    // The change is not one of the same step of the kernel's clock.
    const { ctimeMs } = statSync(clone.source);
    while (statusesOf(clone.root, [touched(clone)])[2] === ctimeMs);
    change(clone);
    assert.equal(freshProgram(clone.root, "a.mjs"), fresh ? path.join(clone.bundle, "a.mjs") : undefined);
  });
}

/** A file that was just changed. */
function touched(clone: Clone): string {
  writeFileSync(path.join(clone.root, "touched"), "");
  return "touched";
}

if (isRoot) {
  test("what belongs to the owner of the dependencies is run by others, too", () => {
    const clone = new Clone();
    chownSync(path.join(clone.root, "node_modules"), somebody, somebody);
    for (const file of [clone.folder, clone.bundle, clone.manifest]) chownSync(file, somebody, somebody);
    assert.equal(freshProgram(clone.root, "a.mjs"), path.join(clone.bundle, "a.mjs"));
  });
}
