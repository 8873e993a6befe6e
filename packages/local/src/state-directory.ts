// The folder `DIR/.tulle`: who may use it, and what lies where. It holds state and logs, nothing that a person has to
// edit.
import { closeSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { makeOwnFolder, removeSocketFolder } from "@tulle/identity/own";
import { tryLock } from "./network/libc.ts";
import { stateFolderName } from "./instance.ts";

/** Another process runs an instance in the same folder. */
export class FolderInUse extends Error {
  override readonly name = "FolderInUse";
  readonly pid: number | undefined;

  constructor(dir: string, pid: number | undefined) {
    super(`${dir} is already running${pid === undefined ? "" : ` (process ${pid})`}`);
    this.pid = pid;
  }
}

export interface StateDirectory {
  readonly dir: string;
  readonly path: string;
  readonly logsFolder: string;
  /** Until it was opened: what was in it may be known. */
  readonly wasOpenToOthers: boolean;
  /** The block of addresses of the last run, so that addresses stay the same across restarts. */
  readonly lastBlockIndex: number | undefined;
  rememberBlock(index: number): void;
  /** State of one pod's sidecar: last good configuration, bootstrap, socket. */
  podFolder(podName: string): string;
  removePodFolder(podName: string): void;
  /** Called when a pod is gone: its logs stay for a while, those of pods long gone are deleted. */
  retireLogs(podName: string): void;
  unlock(): void;
}

/** Pods whose logs are kept after they are gone. */
const keptLogs = 20;

/**
 * Opens the state of `dir`, this user's alone, under an exclusive lock, which the kernel drops when this process ends.
 * @throws {FolderInUse}
 * @throws {NotOwn}
 */
export function openStateDirectory(dir: string): StateDirectory {
  const folder = path.join(dir, stateFolderName);
  const logsFolder = path.join(folder, "logs");
  const wasOpenToOthers = makeOwnFolder(folder);
  for (const inside of [logsFolder, path.join(folder, "pods")]) makeOwnFolder(inside);
  const lockFile = path.join(folder, "lock");
  const descriptor = openSync(lockFile, "a+", 0o600);
  if (!tryLock(descriptor)) {
    const holder = Number(readFileSync(lockFile, "utf8"));
    closeSync(descriptor);
    throw new FolderInUse(dir, holder > 0 ? holder : undefined);
  }
  writeFileSync(lockFile, String(process.pid));
  // It may be known: the control plane makes another.
  if (wasOpenToOthers) rmSync(path.join(folder, "token"), { force: true });
  for (const leftOver of ["logs", "pods"]) clearFolder(path.join(folder, leftOver));
  const retired: string[] = [];
  const blockFile = path.join(folder, "address-block");
  const podFolder = (podName: string): string => path.join(folder, "pods", podName);
  return {
    dir,
    path: folder,
    wasOpenToOthers,
    logsFolder,
    lastBlockIndex: readNumber(blockFile),
    rememberBlock: (index) => writeFileSync(blockFile, String(index), { mode: 0o600 }),
    podFolder,
    removePodFolder: (podName) => removeStateFolder(podFolder(podName)),
    retireLogs: (podName) => {
      retired.push(podName);
      const oldest = retired.length > keptLogs ? retired.shift() : undefined;
      if (oldest !== undefined) rmSync(path.join(logsFolder, oldest), { recursive: true, force: true });
    },
    unlock: () => closeSync(descriptor),
  };
}

/** Removes what pods of an earlier run left; the folder itself stays. */
function clearFolder(folder: string): void {
  for (const name of readdirSync(folder, { withFileTypes: true })) {
    if (name.isDirectory()) removeStateFolder(path.join(folder, name.name));
  }
}

function removeStateFolder(folder: string): void {
  removeSocketFolder(folder);
  rmSync(folder, { recursive: true, force: true });
}

function readNumber(file: string): number | undefined {
  try {
    const value = Number.parseInt(readFileSync(file, "utf8"), 10);
    return Number.isInteger(value) && value >= 0 ? value : undefined;
  } catch {
    return undefined;
  }
}
