// Our plug-in's files on a node: the program among the runtime's plug-ins, and the part of the network's configuration
// that names it. Whoever else writes there (the plug-in that makes the network, when it is upgraded) is followed.
import { constants } from "node:fs";
import { chmod, copyFile, lstat, open, readdir, rename, rm, watch, writeFile } from "node:fs/promises";
import path from "node:path";
import { type Logger, Trouble } from "@tulle/telemetry";
import { pluginType, type PluginSettings, withoutPlugin, withPlugin } from "./network-list.ts";

export interface PluginFilesOptions {
  readonly configurationFolder: string;
  readonly programFolder: string;
  /** What is copied there. */
  readonly program: string;
  readonly settings: PluginSettings;
  readonly log: Logger;
}

/** A runtime takes the first of them by name; those of the last ending are lists. */
const configurationFile = /\.(?:conf|conflist|json)$/;
const maxConfigurationBytes = 1024 * 1024;
/** Changes are told by the kernel; where they are not (a network file system), this often is looked. */
const lookEveryMs = 5000;

export class PluginFiles {
  readonly #options: PluginFilesOptions;
  readonly #trouble: Trouble;

  constructor(options: PluginFilesOptions) {
    this.#options = options;
    this.#trouble = new Trouble(options.log);
  }

  /** Puts both in place, and again whenever they are not there, until it is aborted. */
  async keep(signal: AbortSignal): Promise<void> {
    await this.#installProgram();
    while (!signal.aborted) {
      const changed = this.#changed(signal);
      await this.#ensure();
      await changed;
    }
  }

  /** Pods that start from now on are not captured by it. */
  async remove(): Promise<void> {
    const { configurationFolder, programFolder, log } = this.#options;
    for (const name of await configurations(configurationFolder)) {
      const file = path.join(configurationFolder, name);
      const text = withoutPlugin(await readSafely(file));
      if (text !== undefined) await replace(file, text);
    }
    await rm(path.join(programFolder, pluginType), { force: true });
    log.info("the plug-in was taken out of the node's network configuration", { folder: configurationFolder });
  }

  /** Under another name first: a runtime may be starting it. */
  async #installProgram(): Promise<void> {
    const { programFolder, program } = this.#options;
    const draft = path.join(programFolder, `.${pluginType}.${process.pid}`);
    await copyFile(program, draft, constants.COPYFILE_EXCL);
    await chmod(draft, 0o755);
    await rename(draft, path.join(programFolder, pluginType));
  }

  async #ensure(): Promise<void> {
    const { configurationFolder, settings, log } = this.#options;
    try {
      const [first] = await configurations(configurationFolder);
      if (first === undefined) throw new Error("no network configuration is there yet");
      const file = path.join(configurationFolder, first);
      const text = withPlugin(await readSafely(file), settings);
      if (text !== undefined) {
        const list = file.replace(/\.(?:conf|json)$/, ".conflist");
        await replace(list, text);
        if (list !== file) await rm(file);
        log.info("the plug-in is part of the node's network configuration", { file: list });
      }
      this.#trouble.end("the network configuration can be read again", { folder: configurationFolder });
    } catch (error) {
      this.#trouble.begin(`the plug-in cannot be made part of the node's network: ${(error as Error).message}`, {
        folder: configurationFolder,
      });
    }
  }

  /** Resolves at the next change, or after a while. */
  async #changed(signal: AbortSignal): Promise<void> {
    const until = AbortSignal.any([signal, AbortSignal.timeout(lookEveryMs)]);
    try {
      for await (const { filename } of watch(this.#options.configurationFolder, { signal: until })) {
        if (filename === null || configurationFile.test(filename)) return;
      }
    } catch {
      // It is over, or the folder cannot be watched: then it is looked at after the pause.
      if (!until.aborted) await new Promise((resolve) => until.addEventListener("abort", resolve, { once: true }));
    }
  }
}

async function configurations(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).filter((name) => configurationFile.test(name) && !name.startsWith(".")).sort();
}

/** A file of this program's own user, root: what a link leads to is nobody's configuration. @throws {Error} */
async function readSafely(file: string): Promise<string> {
  if ((await lstat(file)).isSymbolicLink()) throw new Error(`${file} is a symbolic link`);
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size, uid, mode } = await handle.stat();
    if (uid !== process.getuid?.() || (mode & 0o022) !== 0) throw new Error(`${file} can be written by others`);
    if (size > maxConfigurationBytes) throw new Error(`${file} is too long`);
    return await handle.readFile("utf8");
  } finally {
    await handle.close();
  }
}

/** Whole or not at all: the runtime reads it at any time. */
async function replace(file: string, text: string): Promise<void> {
  const draft = path.join(path.dirname(file), `.${path.basename(file)}.${process.pid}`);
  await rm(draft, { force: true });
  await writeFile(draft, text, { flag: "wx", mode: 0o644 });
  await rename(draft, file);
}
