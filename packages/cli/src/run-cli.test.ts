// The frame: what a mistyped command line is answered, and how failures become messages and exit statuses.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CommandFailure, exitCodes } from "./command/command-failure.ts";
import type { CommandContext, CommandRow } from "./command/command-module.ts";
import { addExamples, addOutputOption, wholeNumber } from "./command/command-options.ts";
import { commands } from "./commands.ts";
import { runCli } from "./run-cli.ts";

const table: readonly CommandRow[] = [
  {
    name: "greet",
    aliases: ["g"],
    group: "Words",
    summary: "say hello",
    load: () =>
      Promise.resolve({
        register(command, context) {
          command.argument("<name>", "whom");
          command.option("--times <count>", "how often", wholeNumber(1, 3), 1);
          addOutputOption(command);
          addExamples(command, [["tulle greet Ada", "a friendly word"]]);
          command.action((name: string, options: { times: number }) => {
            if (name === "nobody") throw new CommandFailure("nobody is there", { hint: "Ask somebody else." });
            if (name === "bug") throw new TypeError("x is not a function");
            context.stdout(`hello ${name}\n`.repeat(options.times));
          });
        },
      }),
  },
  {
    name: "broken",
    group: "Words",
    summary: "never loads",
    load: () => Promise.reject(new Error("this file was loaded")),
  },
];

async function run(...args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const out = { stdout: "", stderr: "" };
  const context: CommandContext = {
    env: {},
    cwd: "/",
    stdin: process.stdin,
    isTerminal: false,
    columns: undefined,
    stdout: (text) => void (out.stdout += text),
    stderr: (text) => void (out.stderr += text),
    eraseLines: () => undefined,
    instance: () => Promise.reject(new Error("no instance in this test")),
    printData: () => Promise.resolve(),
  };
  return { code: await runCli(args, context, table), ...out };
}

const lines: readonly { args: string[]; code: number; stdout?: RegExp; stderr?: RegExp }[] = [
  { args: ["greet", "Ada"], code: exitCodes.ok, stdout: /^hello Ada\n$/ },
  { args: ["g", "Ada", "--times", "2"], code: exitCodes.ok, stdout: /^(hello Ada\n){2}$/ },
  { args: [], code: exitCodes.usage, stderr: /Usage: tulle <command>/ },
  { args: ["--help"], code: exitCodes.ok, stdout: /greet, g +say hello/ },
  { args: ["help"], code: exitCodes.ok, stdout: /Words:/ },
  { args: ["help", "greet"], code: exitCodes.ok, stdout: /Usage: tulle greet[^]*Examples:\n {2}# a friendly word/ },
  { args: ["greet", "-h"], code: exitCodes.ok, stdout: /Say hello\./ },
  { args: ["gret"], code: exitCodes.usage, stderr: /unknown command 'gret'\nDid you mean 'greet'\?/ },
  { args: ["qqqqqq"], code: exitCodes.usage, stderr: /unknown command 'qqqqqq'\n'tulle --help' lists/ },
  { args: ["--verbose", "greet"], code: exitCodes.usage, stderr: /unknown option '--verbose' before a command/ },
  { args: ["greet"], code: exitCodes.usage, stderr: /tulle: missing required argument 'name'/ },
  {
    args: ["greet", "a", "--tmes", "2"],
    code: exitCodes.usage,
    stderr: /unknown option '--tmes'\nDid you mean '--times'\?/,
  },
  { args: ["greet", "a", "--times", "4"], code: exitCodes.usage, stderr: /whole number from 1 to 3/ },
  { args: ["greet", "a", "b"], code: exitCodes.usage, stderr: /too many arguments/ },
  { args: ["greet", "a", "-o", "xml"], code: exitCodes.usage, stderr: /Allowed choices are json, yaml/ },
  { args: ["greet", "nobody"], code: exitCodes.failure, stderr: /^tulle: nobody is there\nAsk somebody else\.\n$/ },
  {
    args: ["greet", "bug"],
    code: exitCodes.failure,
    stderr: /internal error[^]*TypeError: x is not a function\n +at /,
  },
];

for (const { args, code, stdout, stderr } of lines) {
  test(`tulle ${args.join(" ")} ends with ${code}`, async () => {
    const result = await run(...args);
    assert.equal(result.code, code, result.stderr);
    assert.match(result.stdout, stdout ?? /^$/);
    assert.match(result.stderr, stderr ?? /^$/);
  });
}

test("every command has help with examples", async (t) => {
  for (const row of commands) {
    await t.test(row.name, async () => {
      let text = "";
      const context = { stdout: (part: string) => void (text += part), stderr: () => undefined, env: {} };
      const code = await runCli([row.name, "--help"], context as unknown as CommandContext);
      assert.equal(code, exitCodes.ok);
      assert.match(text, new RegExp(`^Usage: tulle ${row.name}`));
      assert.match(text, /Examples:\n|Commands:\n/);
    });
  }
});
