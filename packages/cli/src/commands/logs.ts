// `tulle logs`: what a pod's processes wrote, from the files in the state directory.
import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { readdir } from "node:fs/promises";
import path from "node:path";
import type { Command } from "commander";
import { isOwnFolder, NotOwn, stateFolderName } from "@tulle/local/instance";
import { CommandFailure } from "../command-failure.ts";
import type { CommandContext, InstanceOption } from "../command-module.ts";
import { requireHere } from "../control-plane-elsewhere.ts";
import { addExamples, addInstanceOption, wholeNumber } from "../command-options.ts";

interface LogsOptions extends InstanceOption {
  readonly container?: string;
  readonly follow?: boolean;
  readonly tail?: number;
}

/** Processes of the instance itself, which belong to no pod. */
const instanceLogs = ["control-plane", "supervisor"];
const followIntervalMs = 200;
const chunkBytes = 64 * 1024;

export function register(command: Command, context: CommandContext): void {
  command.argument("<pod>", `name of a pod or the start of one, or one of: ${instanceLogs.join(", ")}`);
  addInstanceOption(command);
  command.option("-c, --container <name>", "app, proxy, or a further container's name (default: app, else proxy)");
  command.option("-f, --follow", "go on as more is written, until Ctrl-C");
  command.option("--tail <lines>", "only the last lines", wholeNumber(0));
  addExamples(command, [
    ["tulle logs catalog-v1", "what the app wrote"],
    ["tulle logs tulle-ingressgateway -c proxy -f", "the gateway's access log as it grows"],
  ]);
  command.action(async (pod: string, options: LogsOptions) => {
    const file = await logFile(await logsFolder(options, context), pod, options.container);
    await show(file, options, context);
  });
}

/** The logs of the chosen instance; those of a named folder also when nothing runs there any more, which is when they are needed. */
async function logsFolder(options: InstanceOption, context: CommandContext): Promise<string> {
  try {
    const instance = await context.instance(options);
    requireHere(instance);
    return path.join(instance.stateDir, "logs");
  } catch (error) {
    const named = options.dir ?? context.env["TULLE_DIR"];
    const state = path.resolve(context.cwd, named ?? ".", stateFolderName);
    const folder = path.join(state, "logs");
    if (isOwn(state) && existsSync(folder)) return folder;
    throw error;
  }
}

function isOwn(folder: string): boolean {
  try {
    return isOwnFolder(folder);
  } catch (error) {
    if (error instanceof NotOwn) return false; // told already
    throw error;
  }
}

async function logFile(folder: string, pod: string, container: string | undefined): Promise<string> {
  if (instanceLogs.includes(pod)) return path.join(folder, `${pod}.log`);
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  const matching = names.includes(pod) ? [pod] : names.filter((name) => name.startsWith(pod));
  if (matching.length !== 1) throw await unclearPod(pod, matching, names);
  const logs = (await readdir(path.join(folder, matching[0]!)))
    .filter((name) => name.endsWith(".log"))
    .map((name) => name.slice(0, -".log".length));
  const wanted = container ?? (logs.includes("app") ? "app" : "proxy");
  if (logs.includes(wanted)) return path.join(folder, matching[0]!, `${wanted}.log`);
  throw new CommandFailure(`${matching[0]} has no log "${wanted}"`, { hint: `It has: ${logs.join(", ")}` });
}

async function unclearPod(pod: string, matching: readonly string[], names: readonly string[]): Promise<CommandFailure> {
  if (matching.length > 1) {
    return new CommandFailure(`"${pod}" is the start of several pods' names`, {
      hint: `Choose one:\n${matching.map((name) => `  ${name}`).join("\n")}`,
    });
  }
  const { nearestName } = await import("@tulle/config");
  const near = nearestName(pod, names);
  const hint = near === undefined ? "'tulle pods' lists them." : `Did you mean "${near}"?`;
  return new CommandFailure(`no pod is called "${pod}"`, { hint });
}

async function show(file: string, options: LogsOptions, context: CommandContext): Promise<void> {
  const descriptor = openSync(file, "r");
  try {
    let offset = options.tail === undefined ? 0 : startOfTail(descriptor, options.tail);
    offset = copy(descriptor, offset, context);
    while (options.follow === true) {
      const { promise, resolve } = Promise.withResolvers<void>();
      setTimeout(resolve, followIntervalMs);
      await promise;
      // A log that was cut begins anew.
      if (fstatSync(descriptor).size < offset) offset = 0;
      offset = copy(descriptor, offset, context);
    }
  } finally {
    closeSync(descriptor);
  }
}

/** Prints from `offset` to the present end and answers where that was. */
function copy(descriptor: number, offset: number, context: CommandContext): number {
  const buffer = Buffer.alloc(chunkBytes);
  const decoder = new TextDecoder();
  let at = offset;
  for (;;) {
    const bytes = readSync(descriptor, buffer, 0, chunkBytes, at);
    if (bytes === 0) break;
    at += bytes;
    context.stdout(decoder.decode(buffer.subarray(0, bytes), { stream: true }));
  }
  return at;
}

/** Where the last `lines` lines begin, read backwards from the end. */
function startOfTail(descriptor: number, lines: number): number {
  const { size } = fstatSync(descriptor);
  const buffer = Buffer.alloc(chunkBytes);
  let seen = 0;
  for (let end = size; end > 0; end -= chunkBytes) {
    const start = Math.max(0, end - chunkBytes);
    const bytes = readSync(descriptor, buffer, 0, end - start, start);
    for (let index = bytes - 1; index >= 0; index -= 1) {
      // The newline that ends the last line does not begin another one.
      if (buffer[index] !== 10 || start + index === size - 1) continue;
      seen += 1;
      if (seen === lines) return start + index + 1;
    }
  }
  return lines === 0 ? size : 0;
}
