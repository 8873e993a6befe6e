// The command context of a real process.
import { createRequire } from "node:module";
import { isatty } from "node:tty";
import { terminalText } from "@tulle/telemetry";
import type { CommandContext } from "./command/command-module.ts";
import { endWithReader } from "./end-with-reader.ts";
import { chooseInstance } from "./instance/choose-instance.ts";

const load = createRequire(import.meta.url);
const usualColumns = 80;

export function processContext(): CommandContext {
  endWithReader();
  return {
    env: process.env,
    cwd: process.cwd(),
    // A getter: touching standard input of a process started in the background would stop it.
    get stdin() {
      return process.stdin;
    },
    // Not `isTTY`: that is undefined on a pipe, which picocolors takes for "find out", and on CI it then writes
    // colours.
    isTerminal: isatty(process.stdout.fd) && process.env["TERM"] !== "dumb",
    // A getter too: the window may be made narrower while a command runs.
    get columns() {
      return columnsOf(process.stdout);
    },
    // Names, reasons and logs come from others, and a terminal obeys what it reads. A pipe gets them as they are.
    stdout: (text) => void process.stdout.write(isatty(process.stdout.fd) ? terminalText(text) : text),
    stderr: (text) => void process.stderr.write(isatty(process.stderr.fd) ? terminalText(text) : text),
    eraseLines: (count) => void process.stdout.write(`\u001b[${count}A\u001b[0J`),
    instance: (options) =>
      chooseInstance({
        ...options,
        env: process.env,
        cwd: process.cwd(),
        onRefused: (reason) => void process.stderr.write(terminalText(`tulle: passed over: ${reason}\n`)),
      }),
    async printData(data, format, text) {
      this.stdout(format === undefined ? text() : formatData(data, format));
    },
  };
}

function formatData(data: unknown, format: "json" | "yaml"): string {
  if (format === "json") return `${JSON.stringify(data, null, 2)}\n`;
  const { stringify } = load("yaml") as typeof import("yaml");
  // What is printed is piped into kubectl, too, which reads YAML 1.1: there a plain `y` or `on` is a truth value.
  return stringify(data, { version: "1.1" });
}

/** A terminal that does not know its width says 0; whoever made it means the usual one. */
export function columnsOf({
  isTTY,
  columns,
}: {
  readonly isTTY?: boolean;
  readonly columns?: number;
}): number | undefined {
  if (columns === undefined || columns > 0) return columns;
  return isTTY === true ? usualColumns : undefined;
}
