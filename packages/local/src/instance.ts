// What other processes may know of a running instance: `DIR/.tulle/instance.json`, the token beside it, and the user's
// registry, which lists the instances of this user whatever folder they run in.
import { mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { createHash } from "node:crypto";
import os from "node:os";
import path from "node:path";
import { processStartTime } from "./process-start-time.ts";

export { processStartTime } from "./process-start-time.ts";

export const stateFolderName = ".tulle";

/** One published port, as the table of URLs shows it. */
export interface PublishedPort {
  readonly address: string;
  readonly port: number;
  readonly targetPort: number;
  /** `<service>.<namespace>` */
  readonly service: string;
  /** What clients speak, by the Service's port; `tcp` stands for all but HTTP. */
  readonly protocol: "http" | "https" | "tcp";
}

/** As a person types it. */
export function publishedUrl({ port, protocol }: Pick<PublishedPort, "port" | "protocol">): string {
  return `${protocol}://localhost:${port}`;
}

/** A running instance, as its supervisor wrote it down. */
export interface Instance {
  /** Absolute path of the folder given to `tulle up`. */
  readonly dir: string;
  /** Absolute path of its state, `<dir>/.tulle`. */
  readonly stateDir: string;
  /** Process id of the supervisor (`tulle up`). */
  readonly pid: number;
  /** When that process began, in the kernel's ticks: a reused process id is told apart by it. */
  readonly pidStartTime: string;
  /** Base URL of the control plane's HTTP API, such as `http://127.80.12.1:15014`. */
  readonly apiUrl: string;
  /** `host:port` of the control plane's xDS server, over TLS. */
  readonly xdsAddress: string;
  /** File with the token that writes need (mode 0600). */
  readonly tokenFile: string;
  readonly publishedPorts: readonly PublishedPort[];
  /** All probes passed, every proxy acknowledged, one request through each published port came back. */
  readonly ready: boolean;
  readonly startedAt: string;
  /** The authority behind `https://localhost`, for browsers and `curl --cacert`. */
  readonly developmentRootFile: string;
}

function instanceFile(stateDir: string): string {
  return path.join(stateDir, "instance.json");
}

/** Where programs of this user keep what outlives them (XDG base directories). */
export function stateHome(env: Readonly<Record<string, string | undefined>>): string {
  return env["XDG_STATE_HOME"] || path.join(env["HOME"] || os.homedir(), ".local", "state");
}

/** The user's list of instances: one file each, under the XDG state directory (`$XDG_STATE_HOME/tulle/instances`). */
export function registryFolder(env: Readonly<Record<string, string | undefined>>): string {
  return path.join(stateHome(env), "tulle", "instances");
}

function registryFile(instance: Pick<Instance, "dir">, env: Readonly<Record<string, string | undefined>>): string {
  const name = createHash("sha256").update(instance.dir).digest("hex").slice(0, 16);
  return path.join(registryFolder(env), `${name}.json`);
}

/** Writes the instance down for others; replaces what was there in one step, so that no reader sees half a file. */
export async function writeInstance(instance: Instance): Promise<void> {
  await replaceFile(instanceFile(instance.stateDir), `${JSON.stringify(instance, null, 2)}\n`);
}

/** Enters the instance into the user's registry. */
export async function registerInstance(
  instance: Instance,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await mkdir(registryFolder(env), { recursive: true });
  await replaceFile(registryFile(instance, env), `${JSON.stringify({ dir: instance.dir })}\n`);
}

export async function removeInstance(
  instance: Pick<Instance, "dir" | "stateDir">,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await rm(instanceFile(instance.stateDir), { force: true });
  await rm(registryFile(instance, env), { force: true }).catch(() => undefined); // it may never have been entered
}

/** The live instance of a folder; undefined when none runs there, whatever an ended one left behind. */
export async function readInstance(dir: string): Promise<Instance | undefined> {
  const instance = await readJson<Instance>(instanceFile(path.join(dir, stateFolderName)));
  return instance !== undefined && (await isLive(instance)) ? instance : undefined;
}

async function isLive(instance: Instance): Promise<boolean> {
  return (await processStartTime(instance.pid)) === instance.pidStartTime;
}

/** Every live instance of this user. Entries of ended ones are removed on the way. */
export async function liveInstances(env: Readonly<Record<string, string | undefined>>): Promise<Instance[]> {
  const folder = registryFolder(env);
  const names = await readdir(folder).catch(() => []);
  const found = await Promise.all(
    names
      .filter((name) => name.endsWith(".json"))
      .map(async (name) => {
        const file = path.join(folder, name);
        const entry = await readJson<{ readonly dir: string }>(file);
        const instance = entry === undefined ? undefined : await readInstance(entry.dir);
        if (instance === undefined) await rm(file, { force: true });
        return instance;
      }),
  );
  return found.filter((instance) => instance !== undefined).sort((a, b) => (a.dir < b.dir ? -1 : 1));
}

/** The nearest folder, from `from` upwards, that holds a state folder. */
export async function findStateUpwards(from: string): Promise<string | undefined> {
  for (let dir = path.resolve(from); ; dir = path.dirname(dir)) {
    const entries = await readdir(path.join(dir, stateFolderName)).catch(() => undefined);
    if (entries !== undefined) return dir;
    if (dir === path.dirname(dir)) return undefined;
  }
}

/** Undefined for a file that is missing or holds something else: a disk that was full may have left anything. */
async function readJson<T>(file: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as T;
  } catch {
    return undefined;
  }
}

async function replaceFile(file: string, text: string): Promise<void> {
  const aside = `${file}.${process.pid}`;
  await writeFile(aside, text, { mode: 0o600 });
  await rename(aside, file);
}
