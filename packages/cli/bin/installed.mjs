#!/usr/bin/env node
// The tulle command of an installed package: runs the command under the Node that was installed with it, whatever Node
// started it. Plain JavaScript for any Node from 18 on.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { runUnder } from "./run-under.mjs";

const packages = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..", "..");
const main = path.join(packages, "cli", "src", "main.js");
const load = createRequire(import.meta.url);
const { optionalDependencies } = load(path.join(packages, "..", "..", "package.json"));
process.env.TULLE_INVOKED_AS ??= process.argv[1];

/** The runtime for this platform is the one of the optional packages that npm has installed. */
function installedNode() {
  for (const name of Object.keys(optionalDependencies)) {
    try {
      const program = path.join(path.dirname(load.resolve(`${name}/package.json`)), "bin", "node");
      if (fs.existsSync(program)) return fs.realpathSync(program);
    } catch {
      // It is for another platform.
    }
  }
  return undefined;
}

const node = installedNode();
const pinnedMajor = Number.parseInt(Object.values(optionalDependencies)[0], 10);
if (node !== undefined && node !== process.execPath) {
  runUnder(node, fileURLToPath(import.meta.url));
} else if (node !== undefined || Number.parseInt(process.versions.node, 10) >= pinnedMajor) {
  process.argv[1] = main;
  await import(main);
} else {
  process.stderr.write(
    `tulle: Node ${process.versions.node} is too old, and the one that Tulle brings has not been installed.\n` +
      "Install again without --omit=optional (npm config get omit), on Linux or macOS (x64 or arm64)" +
      `; or run it with Node ${pinnedMajor} or later.\n`,
  );
  process.exitCode = 1;
}
