// The help of every command and sub-command on terminals of three widths: found by the table of commands, so that a new
// one is looked at by itself.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { Command } from "commander";
import { commands } from "./commands.ts";
import type { CommandContext } from "./command/command-module.ts";
import { runCli } from "./run-cli.ts";
import { textWidth } from "./printing/text-width.ts";

/** Examples are copied as they are: they fit the usual terminal, and a narrower one breaks them. */
const exampleColumns = 80;

async function helpOf(words: readonly string[], columns: number): Promise<string> {
  let text = "";
  const take = (part: string): void => void (text += part);
  const context = { env: {}, cwd: "/", isTerminal: true, columns, stdout: take, stderr: take };
  assert.equal(await runCli([...words, "--help"], context as unknown as CommandContext), 0);
  return text;
}

const all: (readonly string[])[] = [[]];
for (const row of commands) {
  const command = new Command(row.name);
  (await row.load()).register(command, {} as CommandContext);
  const walk = (each: Command, words: readonly string[]): void => {
    all.push(words);
    for (const below of each.commands) walk(below, [...words, below.name()]);
  };
  walk(command, [row.name]);
}

test("the folder of commands holds those of the table, and nothing else", () => {
  const entries = readdirSync(path.join(import.meta.dirname, "commands"));
  const names = entries.filter((name) => !name.endsWith(".test.ts")).map((name) => name.replace(/\.ts$/, ""));
  assert.deepEqual(names.toSorted(), commands.map(({ name }) => name).toSorted());
});

for (const words of all) {
  test(`tulle ${[...words, "--help"].join(" ")} fits`, async () => {
    for (const columns of [40, 80, 120]) {
      const text = await helpOf(words, columns);
      let isExample = false;
      const wide = text.split("\n").filter((line) => {
        if (/^\S/.test(line)) isExample = line === "Examples:";
        const isCopied = isExample && !line.startsWith("  # ");
        return textWidth(line) > (isCopied ? Math.max(columns, exampleColumns) : columns);
      });
      assert.deepEqual(wide, [], `${columns} columns`);
    }
  });
}
