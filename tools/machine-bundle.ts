// Makes one file of all that a machine needs to join a mesh: the runtime, the packages as JavaScript, and what they
// depend on. Unpacked anywhere, `tulle/tulle` runs by nothing but the system's C library and its shell: libraries of
// the compiler that the runtime needs lie beside it, for systems that have none.
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";

const root = path.resolve(import.meta.dirname, "..");
const { values } = parseArgs({ options: { output: { type: "string", short: "o", default: "tulle-vm.tar.gz" } } });
const output = path.resolve(values.output);

interface Lock {
  readonly packages: Readonly<
    Record<string, { readonly dev?: boolean; readonly link?: boolean; readonly optional?: boolean }>
  >;
}

const launcher = `#!/bin/sh
# The tulle command of this folder, wherever that lies.
here=\${0%/*}
[ -L "$0" ] && here=$(readlink -f "$0") && here=\${here%/*}
here=$(cd "$here" && pwd)
node="$here/node_modules/node-${process.platform}-${process.arch}/bin/node"
export TULLE_LAUNCHER="$here/tulle"
[ -n "$LD_LIBRARY_PATH" ] || "$node" --version >/dev/null 2>&1 || export LD_LIBRARY_PATH="$here/lib"
exec "$node" "$here/dist/packages/cli/bin/installed.mjs" "$@"
`;

const parent = mkdtempSync(path.join(tmpdir(), "tulle-bundle-"));
try {
  const folder = path.join(parent, "tulle");
  mkdirSync(folder);
  mustRun(process.execPath, [path.join(root, "tools/build-package.ts"), path.join(folder, "dist")]);
  for (const name of ["package.json", "LICENSE"]) cpSync(path.join(root, name), path.join(folder, name));
  for (const name of installedPackages()) copyPackage(name, folder);
  copyLibraries(path.join(folder, "lib"));
  writeFileSync(path.join(folder, "tulle"), launcher, { mode: 0o755 });
  mustRun("tar", ["-C", parent, "--owner=0", "--group=0", "-czf", output, "tulle"]);
} finally {
  rmSync(parent, { recursive: true, force: true });
}
process.stdout.write(`${output}\n`);

/** Folders below node_modules that a user's installation has on this platform, too. */
function installedPackages(): readonly string[] {
  const { packages } = JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8")) as Lock;
  return Object.entries(packages)
    .filter(([name, { dev, link }]) => name.startsWith("node_modules/") && dev !== true && link !== true)
    .map(([name]) => name);
}

/** Without what is only for those who build by it. One of another platform is not there. */
function copyPackage(name: string, folder: string): void {
  const from = path.join(root, name);
  const isWanted = (file: string): boolean =>
    !/\/(?:include|share|\.cache)$|\.(?:map|md|d\.[cm]?ts)$/.test(file) && !file.endsWith("/CHANGELOG");
  try {
    cpSync(from, path.join(folder, name), { recursive: true, filter: isWanted });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

function copyLibraries(folder: string): void {
  mkdirSync(folder);
  const { stdout } = spawnSync("ldd", [process.execPath], { encoding: "utf8" });
  for (const [, name = "", file = ""] of stdout.matchAll(/(lib(?:atomic|stdc\+\+|gcc_s)\.so\.\d+) => (\/\S+)/g)) {
    copyFileSync(file, path.join(folder, name));
  }
}

function mustRun(command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { stdio: "inherit" });
  if (status !== 0) throw new Error(`${command} failed: ${error?.message ?? status}`);
}
