// Which test files a command line of `npm test` means: all, those of paths, those whose path holds a word, or those
// that see a change.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { affectedTests, type Repository } from "./affected-tests.ts";
import type { PackageManifest } from "./tidy/packages.ts";

export interface Wanted {
  readonly root: string;
  /** As typed: paths relative to the working directory, or parts of test files' paths. */
  readonly names: readonly string[];
  /** Narrows it to what can see the work tree's difference from its merge base with main. */
  readonly affected: boolean;
}

export interface Selection {
  readonly files: readonly string[];
  /** What the other checks look at, relative to the root; none means everything. */
  readonly paths: readonly string[];
  /** For the person at the terminal. */
  readonly message?: string;
}

/** `all` are the test files of one kind, relative to `root`. */
export async function selectTests(all: readonly string[], { root, names, affected }: Wanted): Promise<Selection> {
  const files = new Set<string>();
  const paths: string[] = [];
  for (const name of names) {
    const whole = path.resolve(name);
    const isPath = existsSync(whole);
    const place = path.relative(root, whole);
    const found = all.filter((file) => (isPath ? isWithin(file, place) : file.includes(name)));
    if (found.length === 0) {
      const message = isPath ? `${name} holds no test files` : `no such path, and no test file's path holds "${name}"`;
      return { files: [], paths: [], message };
    }
    for (const file of found) files.add(file);
    paths.push(...(isPath ? [place] : found));
  }
  const chosen = names.length === 0 ? all : all.filter((file) => files.has(file));
  if (!affected) return { files: chosen, paths };
  const changed = changesSinceMain(root);
  const seeing = affectedTests(chosen, changed, readRepository(root));
  const count = `${changed.size} changed ${changed.size === 1 ? "file" : "files"}`;
  return { files: seeing, paths, message: `${count}; ${seeing.length} of ${chosen.length} test files can see them` };
}

function isWithin(file: string, place: string): boolean {
  return place === "" || file === place || file.startsWith(`${place}/`);
}

/** Relative to the root. What is deleted or renamed counts by its old name too. */
function changesSinceMain(root: string): ReadonlySet<string> {
  const base = git(root, "merge-base", "HEAD", "main")[0]!;
  return new Set([
    ...git(root, "diff", "--name-only", "--no-renames", base),
    ...git(root, "ls-files", "--others", "--exclude-standard"),
  ]);
}

function readRepository(root: string): Repository {
  const files = git(root, "ls-files", "--cached", "--others", "--exclude-standard")
    .filter((name) => existsSync(path.join(root, name)))
    .map((name) => ({ path: name, text: readFileSync(path.join(root, name), "utf8") }));
  const manifests = files
    .filter((file) => /^packages\/[^/]+\/package\.json$/.test(file.path))
    .map((file) => ({ path: file.path, ...(JSON.parse(file.text) as object) }) as PackageManifest);
  return { files, manifests };
}

function git(root: string, ...args: readonly string[]): readonly string[] {
  const text = execFileSync("git", [...args], { cwd: root, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  return text.split("\n").filter((line) => line !== "");
}
