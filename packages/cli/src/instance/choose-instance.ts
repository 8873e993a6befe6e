// Which instance a command is about, in the documented order; what cannot be decided is an error that lists the
// choices. What another user may have written is no instance, and the reason is told.
import { realpathSync } from "node:fs";
import path from "node:path";
import { findStateUpwards, liveInstances, NotOwn, readInstance, type Instance } from "@tulle/local/instance";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import { controlPlaneElsewhere } from "./control-plane-elsewhere.ts";

export interface InstanceChoice {
  /** Value of `--dir`. */
  readonly dir?: string;
  /** Values of `--context` and `--kubeconfig`. */
  readonly context?: string;
  readonly kubeconfig?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Told of a folder that is passed over because it is not this user's alone. */
  readonly onRefused?: (reason: string) => void;
}

/** @throws {CommandFailure} exit status 3 */
export async function chooseInstance(choice: InstanceChoice): Promise<Instance> {
  try {
    return await choose(choice);
  } catch (error) {
    if (!(error instanceof NotOwn)) throw error;
    throw noInstance(
      error.message,
      "What another user may have written is not believed; run this as the instance's own user.",
    );
  }
}

async function choose(choice: InstanceChoice): Promise<Instance> {
  if (choice.context !== undefined || choice.kubeconfig !== undefined) {
    if (choice.dir === undefined) return (await clusterOf(choice))!;
    throw new CommandFailure("--dir names an instance of this machine, and --context a cluster", {
      exitCode: exitCodes.usage,
    });
  }
  const elsewhere = choice.dir === undefined ? controlPlaneElsewhere(choice.env) : undefined;
  if (elsewhere !== undefined) return elsewhere;
  const named = choice.dir ?? (choice.env["TULLE_DIR"] || undefined);
  if (named !== undefined) {
    const dir = path.resolve(choice.cwd, named);
    const instance = await readInstance(dir);
    if (instance !== undefined) return instance;
    throw noInstance(`nothing runs in ${dir}`, `Start it: tulle up ${named}`);
  }
  const refused = choice.onRefused ?? ((): void => undefined);
  const around = await findLiveUpwards(choice.cwd, refused);
  if (around !== undefined) return around;
  const live = await liveInstances(choice.env, refused);
  if (live.length === 0) {
    const cluster = await clusterOf(choice);
    if (cluster !== undefined) return cluster;
    throw noInstance("no instance is running", "Start one: tulle up <folder>");
  }
  const below = live.filter(({ dir }) => isBelow(dir, choice.cwd));
  const meant = below.length > 0 ? below : live;
  if (meant.length === 1) return meant[0]!;
  const list = meant.map((instance) => `  tulle … --dir ${shorter(instance.dir, choice.cwd)}`).join("\n");
  throw noInstance(
    `${meant.length} instances are running${below.length > 0 ? " below this folder" : ""}, and it is not clear which one is meant`,
    `Choose one:\n${list}`,
  );
}

/** Loaded where it is meant: most commands are about an instance of this machine. */
async function clusterOf(choice: InstanceChoice): Promise<Instance | undefined> {
  const { clusterInstance } = await import("./cluster-instance.ts");
  return clusterInstance(choice, choice);
}

/**
 * Past folders whose `.tulle` holds something else, that of an ended instance, of an authorization server, or is
 * another user's.
 */
async function findLiveUpwards(from: string, onRefused: (reason: string) => void): Promise<Instance | undefined> {
  for (let start = from; ;) {
    const dir = await findStateUpwards(start);
    if (dir === undefined) return undefined;
    try {
      const instance = await readInstance(dir);
      if (instance !== undefined) return instance;
    } catch (error) {
      if (!(error instanceof NotOwn)) throw error;
      onRefused(error.message);
    }
    if (dir === path.dirname(dir)) return undefined;
    start = path.dirname(dir);
  }
}

/** An instance's folder is as it was typed, perhaps by a link; that of this process has no links. */
function isBelow(dir: string, cwd: string): boolean {
  const relative = path.relative(realPath(cwd), realPath(dir));
  return relative !== ".." && !relative.startsWith(`..${path.sep}`);
}

function realPath(dir: string): string {
  try {
    return realpathSync(dir);
  } catch {
    return dir;
  }
}

/** The folder as it is typed with fewer characters: from here, or from the root. */
function shorter(dir: string, cwd: string): string {
  const relative = path.relative(cwd, dir) || ".";
  return relative.length < dir.length ? relative : dir;
}

function noInstance(message: string, hint: string): CommandFailure {
  return new CommandFailure(message, { hint, exitCode: exitCodes.noInstance });
}
