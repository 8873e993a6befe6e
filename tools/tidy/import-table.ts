// Which package may import which: read from the table in ARCHITECTURE.md, so that the page and the check cannot differ.
import path from "node:path";
import { isHandWrittenCode, type Finding, type SourceFile } from "./source-file.ts";

export interface ImportTable {
  /** Package name without scope → names that it may import. */
  readonly allowed: ReadonlyMap<string, ReadonlySet<string>>;
  readonly findings: readonly Finding[];
}

const page = "ARCHITECTURE.md";
const marker = "<!-- imports: read by tools/tidy.ts -->";

/**
 * Reads the first table after the marker: the first column names a package, the last one what it may import ("none", or
 * names).
 */
export function readImportTable(markdown: string): ImportTable {
  const at = markdown.indexOf(marker);
  if (at < 0) return { allowed: new Map(), findings: [pageError(`the marker ${marker} is missing`)] };
  const rows = tableRows(markdown.slice(at + marker.length));
  const allowed = new Map(rows.map(([name = "", ...cells]) => [bare(name), namesIn(cells.at(-1) ?? "")]));
  const unknown = [...allowed].flatMap(([name, imports]) =>
    [...imports]
      .filter((target) => !allowed.has(target))
      .map((target) => pageError(`${name} may import ${target}, which has no row`)),
  );
  return { allowed, findings: [...unknown, ...findCycles(allowed)] };
}

function tableRows(markdown: string): readonly (readonly string[])[] {
  const lines = markdown.split("\n");
  const start = lines.findIndex((line) => line.startsWith("|"));
  const end = lines.findIndex((line, index) => index > start && !line.startsWith("|"));
  return lines
    .slice(start, end < 0 ? undefined : end)
    .slice(2)
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

function namesIn(cell: string): ReadonlySet<string> {
  return new Set([...cell.matchAll(/`([a-z-]+)`/g)].map((match) => match[1]!));
}

function bare(cell: string): string {
  return cell.replaceAll("`", "");
}

function findCycles(allowed: ReadonlyMap<string, ReadonlySet<string>>): readonly Finding[] {
  const reaches = (from: string, to: string, seen: Set<string>): boolean =>
    [...(allowed.get(from) ?? [])].some((next) => {
      if (next === to) return true;
      if (seen.has(next)) return false;
      seen.add(next);
      return reaches(next, to, seen);
    });
  return [...allowed.keys()]
    .filter((name) => reaches(name, name, new Set()))
    .map((name) => pageError(`${name} may, in the end, import itself`));
}

function pageError(message: string): Finding {
  return { place: page, severity: "error", message };
}

/**
 * Import statements and re-exports, imports without names, dynamic imports and types by import(), as they stand after
 * formatting.
 */
const importPatterns = [
  /(?:^|\n)\s*(?:import|export)\b(?<names>[^'"`;]*?)\bfrom\s*['"](?<specifier>[^'"]+)['"]/g,
  /(?:^|\n)\s*import\s*['"](?<specifier>[^'"]+)['"]/g,
  /\bimport\(\s*['"](?<specifier>[^'"]+)['"]\s*\)/g,
];

export interface ModuleImport {
  readonly specifier: string;
  readonly line: number;
  /** `import type …`, or types alone in braces: nothing of it is left when the program runs. */
  readonly isType: boolean;
}

/** Every module that a file names. */
export function importsOf(file: SourceFile): readonly ModuleImport[] {
  return importPatterns.flatMap((pattern) =>
    [...file.text.matchAll(pattern)].map(({ 0: whole, index, groups }) => ({
      specifier: groups!["specifier"]!,
      line: file.text.slice(0, index + whole.length).split("\n").length,
      isType: areTypes(groups!["names"]?.trim() ?? ""),
    })),
  );
}

function areTypes(names: string): boolean {
  if (/^type\s+\S/.test(names)) return true;
  const inBraces = /^\{(.*)\}$/s.exec(names)?.[1]?.split(",") ?? [];
  const present = inBraces.map((name) => name.trim()).filter((name) => name !== "");
  return present.length > 0 && present.every((name) => name.startsWith("type "));
}

/** Folders outside of the packages, and what each may import by a relative path beside itself. */
const outside: Readonly<Record<string, readonly string[]>> = {
  samples: [],
  tests: ["tools", "samples", "bench"],
  bench: ["tests/tools"],
  tools: ["tests/tools"],
};

/** Tests beside the code drive real programs with the tools in tests/tools. */
const forPackageTests = ["tests/tools"];

export function checkImports(file: SourceFile, table: ImportTable): readonly Finding[] {
  if (!isHandWrittenCode(file)) return [];
  return importsOf(file).flatMap(({ specifier, line }) => {
    const message = specifier.startsWith(".")
      ? checkRelative(file.path, specifier)
      : checkPackage(file.path, specifier, table);
    return message === undefined ? [] : [{ place: file.path, line, severity: "error" as const, message }];
  });
}

function checkRelative(from: string, specifier: string): string | undefined {
  const target = path.posix.join(path.posix.dirname(from), specifier);
  const home = homeOf(from);
  if (homeOf(target) === home) return undefined;
  const isTest = from.endsWith(".test.ts") || /\/(testing|tools)\//.test(from);
  // The command's entry runs before anything is installed, so that it cannot ask for a package.
  if (from === "packages/cli/bin/tulle.mjs" && target === "tools/bootstrap.mjs") return undefined;
  // What a package offers to tests alone has no export.
  if ((home === "bench" || home === "tests") && /^packages\/[^/]+\/src\/testing\//.test(target)) return undefined;
  const may = home.startsWith("packages/") ? (isTest ? forPackageTests : []) : (outside[home] ?? []);
  if (may.some((folder) => target.startsWith(`${folder}/`))) return undefined;
  const advice = target.startsWith("packages/") ? `; import @tulle/${target.split("/")[1]}` : "";
  return `"${specifier}" leaves ${home}${advice}`;
}

function checkPackage(from: string, specifier: string, table: ImportTable): string | undefined {
  const target = /^@tulle\/([^/]+)/.exec(specifier)?.[1];
  const home = homeOf(from);
  if (target === undefined) return undefined;
  if (home === "samples")
    return `samples are applications of the mesh's users and import nothing of it, not ${specifier}`;
  if (!home.startsWith("packages/")) return undefined;
  const name = home.slice("packages/".length);
  if (target === name) return `"${specifier}" is this package itself; import the file`;
  const allowed = table.allowed.get(name);
  if (allowed === undefined || allowed.has(target)) return undefined;
  return `${name} may not import ${target} (${page}, packages)`;
}

/** `packages/<name>`, or the top folder. */
function homeOf(file: string): string {
  const [top = "", second = ""] = file.split("/");
  return top === "packages" ? `packages/${second}` : top;
}
