#!/usr/bin/env node
// The tulle command of a clone: sets the clone up if need be, then runs the command under the pinned Node, whatever
// Node started it. Plain JavaScript for any Node from 18 on; under the pinned Node there is no second process.
import fs from "node:fs";
import module from "node:module";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { isSetUp, pinnedNode, setUpOrExit } from "../../../tools/bootstrap.mjs";
import { runUnder } from "./run-under.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const main = path.join(here, "..", "src", "main.ts");
// Children and the pinned Node are started with the script's own path: how it was typed is kept beside.
process.env.TULLE_INVOKED_AS ??= process.argv[1];

// What runs now may be the Node of an earlier set-up.
const wasSetUp = isSetUp();
if (!wasSetUp) await setUpOrExit();

if (wasSetUp && process.execPath === fs.realpathSync(pinnedNode)) {
  // Compiled code and stripped types are kept between runs; a folder that cannot be written only makes the start
  // slower.
  module.enableCompileCache(path.join(here, "..", "..", "..", "node_modules", ".cache", "compile"));
  process.argv[1] = main;
  await import(main);
} else {
  runUnder(pinnedNode, fileURLToPath(import.meta.url));
}
