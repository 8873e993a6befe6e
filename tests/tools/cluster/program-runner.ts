// Starts the cluster's programs: each writes a log file of its own, and a start that fails says its last lines.
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { waitFor } from "../processes.ts";
import type { ClusterPrograms } from "./cluster-programs.ts";

const lastLinesShown = 20;

export class ProgramRunner {
  readonly environment: NodeJS.ProcessEnv;
  readonly #folder: string;

  /** Logs lie in `folder`. */
  constructor(programs: ClusterPrograms, folder: string) {
    const { folders, libraryPath } = programs;
    this.environment = {
      ...process.env,
      PATH: [...folders, process.env["PATH"]].join(":"),
      LD_LIBRARY_PATH: libraryPath,
      KUBECONFIG: undefined,
    };
    this.#folder = folder;
  }

  logFile(name: string): string {
    return path.join(this.#folder, `${name}.log`);
  }

  /** Within the network of `network`, a node's name; in the caller's own without. */
  start(name: string, command: readonly string[], network?: string): ChildProcess {
    const log = openSync(this.logFile(name), "a");
    const [program, ...args] = network === undefined ? command : ["nsenter", `--net=/run/netns/${network}`, ...command];
    const child = spawn(program!, args, { env: this.environment, stdio: ["ignore", log, log] });
    closeSync(log);
    child.once("error", (error) => void process.stderr.write(`${name}: ${error.message}\n`));
    return child;
  }

  /** Waits for a condition; what fails tells what the program of that name wrote last. */
  async ready(name: string, condition: () => Promise<boolean>): Promise<void> {
    try {
      await waitFor(condition, { what: `${name} to be ready`, intervalMs: 100 });
    } catch (error) {
      const written = await readFile(this.logFile(name), "utf8").catch(() => "nothing was written");
      const last = written.trimEnd().split("\n").slice(-lastLinesShown).join("\n");
      throw new Error(`${(error as Error).message}; its last words:\n${last}`, { cause: error });
    }
  }
}
