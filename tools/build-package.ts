// Makes `dist/`, or another folder that is named: what `npm pack` puts into the tarball, the packages' sources as
// JavaScript, since Node strips no types below node_modules. Packages are imported by relative paths there, so that the
// tarball needs nothing of a workspace.
import { chmodSync, cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import path from "node:path";
import { bundlePrograms } from "./bundle-programs.ts";

const root = path.resolve(import.meta.dirname, "..");
const dist = path.resolve(process.argv[2] ?? path.join(root, "dist"));

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly exports: Readonly<Record<string, string>>;
}

process.removeAllListeners("warning");
rmSync(dist, { recursive: true, force: true });

/** By name, with the folder in the repository. */
const packages = new Map<string, { readonly folder: string; readonly manifest: Manifest }>();
for (const file of globSync("packages/*/package.json", { cwd: root })) {
  const manifest = JSON.parse(readFileSync(path.join(root, file), "utf8")) as Manifest;
  packages.set(manifest.name, { folder: path.dirname(file), manifest });
}

for (const { folder, manifest } of packages.values()) {
  const { name, version } = manifest;
  write(path.join(folder, "package.json"), `${JSON.stringify({ name, version, private: true, type: "module" })}\n`);
  for (const file of globSync(`${folder}/src/**/*.ts`, { cwd: root })) {
    if (isOfTests(file)) continue;
    write(file.replace(/\.ts$/, ".js"), asJavaScript(file));
  }
}
for (const name of ["installed.mjs", "run-under.mjs"])
  cpSync(path.join(root, "packages/cli/bin", name), path.join(dist, "packages/cli/bin", name));
chmodSync(path.join(dist, "packages/cli/bin/installed.mjs"), 0o755);

// What runs of them, wherever the folder lies then: a source finds what is beside it among the packages.
const fromDist = (file: string): string => JSON.stringify(path.relative(dist, file));
const bundle = await bundlePrograms({
  root: dist,
  extension: "js",
  folder: path.join(dist, "bundle"),
  dirname: (file) => `__pathOf(__place(${fromDist(path.dirname(file))}))`,
  url: (file) => `__place(${fromDist(file)})`,
});
for (const [name, contents] of bundle) write(path.join("bundle", name), contents);

function isOfTests(file: string): boolean {
  return /\.test\.ts$|\/testing\//.test(file);
}

function asJavaScript(file: string): string {
  const code = stripTypeScriptTypes(readFileSync(path.join(root, file), "utf8"));
  return (
    code
      // Names of modules, and what is said of their endings.
      .replaceAll(/\.ts(?=["'`])/g, ".js")
      .replaceAll('"module-typescript"', '"module"')
      .replaceAll(
        /(\bfrom\s+|\bimport\s*\(\s*|\bimport\s+)"(@tulle\/[^"]+)"/g,
        (_all, before: string, name: string) => {
          return `${before}"${relativeImport(file, name)}"`;
        },
      )
  );
}

/** `../../config/src/index.js` for `@tulle/config`. */
function relativeImport(from: string, specifier: string): string {
  const [, name = "", subpath = ""] = /^(@tulle\/[^/]+)(.*)$/.exec(specifier) ?? [];
  const found = packages.get(name);
  if (found === undefined) throw new Error(`${from} imports ${specifier}, which is no package here`);
  const { folder, manifest } = found;
  for (const [pattern, target] of Object.entries(manifest.exports)) {
    const [head = "", tail] = pattern.split("*");
    const wanted = `.${subpath}`;
    const matches = tail === undefined ? wanted === pattern : wanted.startsWith(head) && wanted.endsWith(tail);
    if (!matches) continue;
    const star = tail === undefined ? "" : wanted.slice(head.length, wanted.length - tail.length);
    const file = path.join(folder, target.replace("*", star)).replace(/\.ts$/, ".js");
    const relative = path.relative(path.dirname(from), file);
    return relative.startsWith(".") ? relative : `./${relative}`;
  }
  throw new Error(`${from} imports ${specifier}, which ${name} does not export`);
}

function write(file: string, text: string | Uint8Array): void {
  const target = path.join(dist, file);
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, text);
}
