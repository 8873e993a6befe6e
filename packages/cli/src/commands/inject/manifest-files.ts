// Manifests as texts, since their bytes are to stay: from files, folders and standard input.
import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { maxFileBytes } from "@tulle/config";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";

export interface ManifestFile {
  /** As messages name it. */
  readonly name: string;
  /** Where it goes below a folder of outputs. */
  readonly relativeName: string;
  readonly text: string;
}

export interface ManifestFiles {
  readonly files: readonly ManifestFile[];
  /** One file was named, or standard input. */
  readonly isOne: boolean;
}

/** A folder stands for its own .yaml, .yml and .json files. @throws {CommandFailure} naming the file */
export async function readManifestFiles(paths: readonly string[], context: CommandContext): Promise<ManifestFiles> {
  if (paths.includes("-")) {
    if (paths.length > 1) throw usage('"-" (standard input) cannot be mixed with files');
    const text = decode("<stdin>", await readStdin(context.stdin));
    return { files: [{ name: "<stdin>", relativeName: "stdin.yaml", text }], isOne: true };
  }
  const files: ManifestFile[] = [];
  let isOne = paths.length === 1;
  for (const each of paths) {
    const place = path.resolve(context.cwd, each);
    const named = async (work: () => Promise<void>): Promise<void> => {
      try {
        await work();
      } catch (error) {
        if (error instanceof CommandFailure) throw error;
        const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
        const message = isMissing ? `there is no file ${each}` : `${each}: ${(error as Error).message}`;
        throw new CommandFailure(message, { cause: error });
      }
    };
    await named(async () => {
      if (!(await stat(place)).isDirectory()) {
        files.push({ name: each, relativeName: path.basename(each), text: await readOne(place, each) });
        return;
      }
      isOne = false;
      const names = (await readdir(place)).filter((name) => /\.(ya?ml|json)$/i.test(name)).sort();
      if (names.length === 0) throw new CommandFailure(`${each} has no .yaml, .yml or .json file`);
      for (const name of names) {
        const file = path.join(each, name);
        // In a folder nobody means a pipe, and reading it could wait for ever.
        if (!(await stat(path.join(place, name))).isFile()) continue;
        files.push({ name: file, relativeName: name, text: await readOne(path.join(place, name), file) });
      }
    });
  }
  return { files, isOne };
}

async function readOne(place: string, name: string): Promise<string> {
  const { size } = await stat(place);
  if (size > maxFileBytes) throw new CommandFailure(`${name} has ${size} bytes, the limit is ${maxFileBytes}`);
  return decode(name, await readFile(place));
}

/** A byte order mark is a byte like any other. */
function decode(name: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw new CommandFailure(`${name} is not UTF-8 text`, { hint: "Save it as UTF-8.", cause: error });
  }
}

async function readStdin(stdin: NodeJS.ReadableStream): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    const buffer = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    bytes += buffer.length;
    if (bytes > maxFileBytes) throw new CommandFailure(`standard input is longer than ${maxFileBytes} bytes`);
    chunks.push(buffer);
  }
  return Buffer.concat(chunks);
}

const usage = (message: string): CommandFailure => new CommandFailure(message, { exitCode: exitCodes.usage });
