// The command line as a person has it who administers the cluster: it finds the cluster by KUBECONFIG.
import assert from "node:assert/strict";
import path from "node:path";
import { lastLines, runCommand } from "../run-command.ts";

const program = path.resolve(import.meta.dirname, "../../../packages/cli/bin/tulle.mjs");

/** Resolves to what it prints, or to what it says where another exit code is expected. */
export async function tulle(args: readonly string[], expected = 0): Promise<string> {
  const result = await runCommand(process.execPath, [program, ...args], { timeoutMs: 300_000 });
  assert.equal(result.code, expected, `tulle ${args.join(" ")}: ${lastLines(result)}`);
  return expected === 0 ? result.stdout : result.stderr;
}
