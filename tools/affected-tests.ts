// `npm test -- --affected`: which test files can see a change. A file sees what it imports and what it names in a
// string, and through those all that they see in turn; nothing here is kept by hand.
import path from "node:path";
import { importsOf } from "./tidy/import-table.ts";
import type { PackageManifest } from "./tidy/packages.ts";
import { isGenerated, type SourceFile } from "./tidy/source-file.ts";

/** What every test stands on, though none names it. */
const underAll = /^(?:package(?:-lock)?\.json|tsconfig\.json|tools\/(?:test|bootstrap)[^/]*)$/;

/** The repository's top folder: its files alone, not the folders in it. */
const top = ".";

const code = /\.(?:ts|mjs)$/;

export interface Repository {
  readonly files: readonly SourceFile[];
  readonly manifests: readonly PackageManifest[];
}

/** The test files of `tests` that see one of the `changed` files. All paths are relative to the repository's root. */
export function affectedTests(
  tests: readonly string[],
  changed: ReadonlySet<string>,
  repository: Repository,
): readonly string[] {
  if (changed.values().some((file) => underAll.test(file))) return tests;
  const seenBy = lookups(repository);
  return tests.filter((test) => reaches(test, changed, seenBy));
}

/** What one file sees itself: files, and folders, which stand for all that is in them. */
type Lookup = (file: string) => readonly string[];

function lookups({ files, manifests }: Repository): Lookup {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const folders = new Set([top, ...files.flatMap(({ path: name }) => foldersOf(name))]);
  const exports = new Map(manifests.flatMap(exportsOf));
  const known = new Map<string, readonly string[]>();
  return (name) => {
    const already = known.get(name);
    if (already !== undefined) return already;
    const file = byPath.get(name);
    const sees =
      file === undefined || !code.test(name)
        ? []
        : [
            ...importsOf(file).flatMap(({ specifier }) => exports.get(specifier) ?? inFolder(name, specifier)),
            ...(isGenerated(file) ? [] : namedIn(file)),
          ].filter((target) => byPath.has(target) || folders.has(target));
    known.set(name, sees);
    return sees;
  };
}

function reaches(start: string, changed: ReadonlySet<string>, seenBy: Lookup): boolean {
  const seen = new Set([start]);
  for (const name of seen) {
    if (changed.has(name)) return true;
    if (!code.test(name) && changed.values().some((file) => isWithin(file, name))) return true;
    for (const next of seenBy(name)) seen.add(next);
  }
  return false;
}

function isWithin(file: string, folder: string): boolean {
  return folder === top ? !file.includes("/") : file.startsWith(`${folder}/`);
}

function exportsOf(manifest: PackageManifest): [string, string][] {
  const folder = path.posix.dirname(manifest.path);
  return Object.entries(manifest.exports ?? {}).map(([entry, file]) => [
    path.posix.join(manifest.name, entry),
    path.posix.join(folder, file),
  ]);
}

/**
 * `"samples/shop"`, `"../bin/tulle.mjs"`, `path.join(root, "packages", "cli", "src", "main.ts")`: programs that are
 * started, files that are read.
 */
function namedIn(file: SourceFile): readonly string[] {
  const text = file.text.replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, "");
  const single = text.matchAll(/["']([\w@./-]*[/.][\w@./-]+)["']/g).map(([, name]) => name!);
  const joined = text
    .matchAll(/((?:["'][\w.-]+["'],\s*)+["'][\w.-]+["'])/g)
    .map(([, names]) => names!.replaceAll(/["'\s]/g, "").replaceAll(",", "/"));
  // "docs/**/*.md" stands for the folder, "*.md" for what lies at the top.
  const patterns = text.matchAll(/["']([\w@./-]*?)\/?\*[\w*./]*\.\w+["']/g).map(([, folder]) => folder! || top);
  return [
    ...patterns,
    ...[...single, ...joined].flatMap((name) => [path.posix.normalize(name), ...inFolder(file.path, name)]),
  ];
}

function inFolder(from: string, name: string): string[] {
  return [path.posix.join(path.posix.dirname(from), name)];
}

function foldersOf(name: string): readonly string[] {
  const parts = name.split("/").slice(0, -1);
  // "packages" and "tests" name nothing by themselves; "docs" and "samples" do.
  return parts
    .map((_part, index) => parts.slice(0, index + 1).join("/"))
    .filter((folder) => !/^(?:packages|tests|tools|bench)$/.test(folder));
}
