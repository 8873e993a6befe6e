// Each workspace package declares what it imports and stands in ARCHITECTURE.md's table.
import type { ImportTable } from "./import-table.ts";
import path from "node:path";
import { isHandWrittenCode, type Finding, type SourceFile } from "./source-file.ts";

export interface PackageManifest {
  /** Of its package.json. */
  readonly path: string;
  readonly name: string;
  /** Files that other packages may import. */
  readonly exports?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

export function checkPackages(manifests: readonly PackageManifest[], table: ImportTable): readonly Finding[] {
  const folders = manifests.map((manifest) => manifest.path.split("/")[1]!);
  const absent = [...table.allowed.keys()].filter((name) => !folders.includes(name));
  return [
    ...absent.map((name) => error("ARCHITECTURE.md", `the table has a row for ${name}, which is no package`)),
    ...manifests.flatMap((manifest) => checkManifest(manifest, table)),
  ];
}

function checkManifest(manifest: PackageManifest, table: ImportTable): readonly Finding[] {
  const folder = manifest.path.split("/")[1]!;
  const allowed = table.allowed.get(folder);
  if (allowed === undefined)
    return [error(manifest.path, `${folder} has no row in ARCHITECTURE.md's table of packages`)];
  const findings = Object.keys(manifest.dependencies ?? {})
    .filter((name) => name.startsWith("@tulle/") && !allowed.has(name.slice("@tulle/".length)))
    .map((name) => error(manifest.path, `${folder} may not depend on ${name}`));
  return manifest.name === `@tulle/${folder}`
    ? findings
    : [...findings, error(manifest.path, `is called ${manifest.name}, not @tulle/${folder}`)];
}

const reExport = /^export\s+(type\s+)?(\*|\{[^}]*\})[^;'"]*from\s*['"][^'"]+['"];?\s*/gm;

/** Only the entries of a package, which its manifest names, gather the exports of other files. */
export function checkBarrels(files: readonly SourceFile[], manifests: readonly PackageManifest[]): readonly Finding[] {
  const entries = new Set(
    manifests.flatMap((manifest) =>
      Object.values(manifest.exports ?? {}).map((entry) => path.posix.join(path.posix.dirname(manifest.path), entry)),
    ),
  );
  return files
    .filter((file) => isHandWrittenCode(file) && !entries.has(file.path) && onlyPassesOn(file.text))
    .map((file) => error(file.path, "only passes on exports of other files; only a package entry does that"));
}

function onlyPassesOn(text: string): boolean {
  const code = text.replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "").trim();
  return code !== "" && code.replaceAll(reExport, "").trim() === "";
}

function error(place: string, message: string): Finding {
  return { place, severity: "error", message };
}
