// Makes one file of all that a machine needs to join a mesh: the runtime, the packages as JavaScript, and what they
// depend on. Unpacked anywhere, `tulle/tulle` runs by nothing but the system's C library and its shell: libraries of
// the compiler that the runtime needs lie beside it, for systems that have none.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { makeInstallation } from "./installation.ts";

const { values } = parseArgs({ options: { output: { type: "string", short: "o", default: "tulle-vm.tar.gz" } } });
const output = path.resolve(values.output);

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
  makeInstallation(folder);
  copyLibraries(path.join(folder, "lib"));
  writeFileSync(path.join(folder, "tulle"), launcher, { mode: 0o755 });
  mustRun("tar", ["-C", parent, "--owner=0", "--group=0", "-czf", output, "tulle"]);
} finally {
  rmSync(parent, { recursive: true, force: true });
}
process.stdout.write(`${output}\n`);

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
