// `npm run tidy`: the rules of this repository that no linter knows, each a row of the table in tidy/rules.ts.
// Paths narrow it; warnings (sizes) are printed and do not fail it.
import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { checkImports, readImportTable } from "./tidy/import-table.ts";
import { checkBarrels, checkPackages, type PackageManifest } from "./tidy/packages.ts";
import { checkCircles, checkRooms, readRoomTables } from "./tidy/rooms.ts";
import { fileRules } from "./tidy/rules.ts";
import type { Finding, SourceFile } from "./tidy/source-file.ts";
import { checkTestCode } from "./tidy/test-code.ts";

const root = path.resolve(import.meta.dirname, "..");
const paths = process.argv.slice(2).map((given) => path.relative(root, path.resolve(given)));

const architecture = readFileSync(path.join(root, "ARCHITECTURE.md"), "utf8");
const table = readImportTable(architecture);
const files = listFiles().map(read);
const manifests = files
  .filter((file) => /^packages\/[^/]+\/package\.json$/.test(file.path))
  .map((file) => ({ path: file.path, ...(JSON.parse(file.text) as object) }) as PackageManifest);
const findings: readonly Finding[] = [
  ...table.findings,
  ...checkPackages(manifests, table),
  ...checkBarrels(files, manifests),
  ...files.flatMap((file) => checkImports(file, table)),
  ...readRoomTables(architecture).flatMap((rooms) => checkRooms(files, rooms)),
  ...checkCircles(files),
  ...checkTestCode(files),
  ...files.flatMap((file) => fileRules.flatMap((rule) => rule(file))),
];

const shown = findings.filter(({ place }) => paths.length === 0 || paths.some((p) => p === "" || isWithin(place, p)));
const errors = shown.filter((finding) => finding.severity === "error");
for (const { place, line, severity, message } of shown) {
  process.stdout.write(
    `${severity === "error" ? "error" : "look "} ${place}${line === undefined ? "" : `:${line}`}: ${message}\n`,
  );
}
process.stdout.write(
  `${files.length} files, ${errors.length} errors, ${shown.length - errors.length} to look at again\n`,
);
process.exitCode = errors.length === 0 ? 0 : 1;

/** What is tracked or would be, but for links to folders; a file that is deleted but not yet committed is left out. */
function listFiles(): readonly string[] {
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  const names = listed.split("\0").filter((name) => name !== "" && isFile(path.join(root, name)));
  return [...new Set(names)].sort();
}

function isFile(name: string): boolean {
  return statSync(name, { throwIfNoEntry: false })?.isFile() ?? false;
}

function read(name: string): SourceFile {
  const bytes = readFileSync(path.join(root, name));
  return { path: name, text: bytes.includes(0) ? "" : bytes.toString("utf8") };
}

function isWithin(place: string, folder: string): boolean {
  return place === folder || place.startsWith(`${folder}/`);
}
