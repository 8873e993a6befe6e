// What other processes may know of a running instance: `DIR/.tulle/instance.json`, and the user's registry, which lists
// the instances of this user whatever folder they run in. Neither is believed where another user may have written it.
import { lstat, readdir, rm } from "node:fs/promises";
import { createHash } from "node:crypto";
import os from "node:os";
import path from "node:path";
import { apiSocketName } from "@tulle/config/api";
import { findSocketPath, isOwnFolder, NotOwn, readOwnFile, writeSecretFile } from "@tulle/identity/own";
import { processStartTime } from "./process-start-time.ts";

export { isOwnFolder, NotOwn } from "@tulle/identity/own";
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
export function publishedUrl({
  address,
  port,
  protocol,
}: Pick<PublishedPort, "address" | "port" | "protocol">): string {
  const isHere = ["127.0.0.1", "0.0.0.0", "::"].includes(address);
  const host = isHere ? "localhost" : address.includes(":") ? `[${address}]` : address;
  return `${protocol}://${host}:${port}`;
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
  /** Where the control plane tells everybody of its readiness and metrics, such as `http://127.80.12.1:15014`. */
  readonly apiUrl: string;
  /** `host:port` of the control plane's xDS server, over TLS. */
  readonly xdsAddress: string;
  readonly publishedPorts: readonly PublishedPort[];
  /** Pods have networks of their own, which commands enter to ask a proxy; missing in loopback mode. */
  readonly mode?: "namespaces";
  /** All probes passed, every proxy acknowledged, one request through each published port came back. */
  readonly ready: boolean;
  readonly startedAt: string;
  /** The authority behind `https://localhost`, for browsers and `curl --cacert`. */
  readonly developmentRootFile: string;
  /** How it is asked where this machine does not run it; never written down. */
  readonly elsewhere?: { readonly url: string; readonly token: string; readonly rootsPem: string };
}

function instanceFile(stateDir: string): string {
  return path.join(stateDir, "instance.json");
}

/**
 * Where the control plane of an instance is asked, by its owner alone. Told by the folder, never by what is written in
 * it.
 * @throws {NotOwn}
 */
export function apiSocketPath(stateDir: string, env: Readonly<Record<string, string | undefined>>): string {
  return findSocketPath(stateDir, apiSocketName, env);
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
  await writeSecretFile(instanceFile(instance.stateDir), `${JSON.stringify(instance, null, 2)}\n`);
}

/** Enters the instance into the user's registry. */
export async function registerInstance(
  instance: Instance,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await writeSecretFile(registryFile(instance, env), `${JSON.stringify({ dir: instance.dir })}\n`);
}

export async function removeInstance(
  instance: Pick<Instance, "dir" | "stateDir">,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await rm(instanceFile(instance.stateDir), { force: true });
  await rm(registryFile(instance, env), { force: true }).catch(() => undefined); // it may never have been entered
}

/**
 * The live instance of a folder; undefined when none runs there, whatever an ended one left behind.
 * @throws {NotOwn} where the folder's state is another user's, or could have been written by one
 */
export async function readInstance(dir: string): Promise<Instance | undefined> {
  const stateDir = path.join(dir, stateFolderName);
  if (!isOwnFolder(stateDir)) return undefined;
  const written = readJson(instanceFile(stateDir)) as Instance | undefined;
  if (written === undefined || (await processStartTime(written.pid)) !== written.pidStartTime) return undefined;
  const { elsewhere: _, ...instance } = written;
  return { ...instance, dir, stateDir };
}

/**
 * Every live instance of this user. Entries of ended ones are removed on the way; `onRefused` is told of what is not
 * believed, and why.
 * @throws {NotOwn} where the list itself is another user's
 */
export async function liveInstances(
  env: Readonly<Record<string, string | undefined>>,
  onRefused: (reason: string) => void = () => undefined,
): Promise<Instance[]> {
  const folder = registryFolder(env);
  if (!isOwnFolder(folder)) return [];
  const names = await readdir(folder);
  const found = await Promise.all(
    names
      .filter((name) => name.endsWith(".json"))
      .map(async (name) => {
        const file = path.join(folder, name);
        try {
          const entry = readJson(file) as { readonly dir: string } | undefined;
          const instance = entry === undefined ? undefined : await readInstance(entry.dir);
          if (instance === undefined) await rm(file, { force: true });
          return instance;
        } catch (error) {
          if (!(error instanceof NotOwn)) throw error;
          onRefused(error.message);
          return undefined;
        }
      }),
  );
  return found.filter((instance) => instance !== undefined).sort((a, b) => (a.dir < b.dir ? -1 : 1));
}

/** The nearest folder, from `from` upwards, that holds a state folder, or something by its name. */
export async function findStateUpwards(from: string): Promise<string | undefined> {
  for (let dir = path.resolve(from); ; dir = path.dirname(dir)) {
    const found = await lstat(path.join(dir, stateFolderName)).catch(() => undefined);
    if (found !== undefined) return dir;
    if (dir === path.dirname(dir)) return undefined;
  }
}

/**
 * Undefined for a file that is missing or holds something else: a disk that was full may have left anything.
 * @throws {NotOwn}
 */
function readJson(file: string): unknown {
  const found = readOwnFile(file);
  try {
    return found === undefined ? undefined : JSON.parse(found.text);
  } catch {
    return undefined;
  }
}
