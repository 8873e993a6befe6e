// Each workspace package declares what it imports and stands in ARCHITECTURE.md's table.
import type { ImportTable } from "./import-table.ts";
import type { Finding } from "./source-file.ts";

export interface PackageManifest {
  /** Of its package.json. */
  readonly path: string;
  readonly name: string;
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

function error(place: string, message: string): Finding {
  return { place, severity: "error", message };
}
