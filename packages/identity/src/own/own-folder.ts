// Folders that are one user's alone: where secrets, sockets and state lie. What another user may have made or may reach
// is never used.
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  type Stats,
} from "node:fs";
import path from "node:path";
import { NotOwn, openToOthers, requireNoOtherWriter, requireOwner } from "./not-own.ts";

const folderMode = 0o700;

/**
 * Makes a folder of mode 0700, whatever the umask, or takes the one there is. One of ours that others could reach is
 * closed to them first, with all that is in it; then the answer is true: what was secret there may be known.
 * @throws {NotOwn} where another user owns it, or has put something into it; the file system's error where none can be
 * made
 */
export function makeOwnFolder(folder: string): boolean {
  makeMissing(path.resolve(folder));
  return withFolder(folder, (descriptor, { uid, mode }) => {
    requireOwner(folder, uid);
    if ((mode & 0o777) === folderMode) return false;
    // By the descriptor: a name could mean something else by now.
    fchmodSync(descriptor, folderMode);
    if ((mode & openToOthers) === 0) return false;
    try {
      closeToOthers(folder);
    } catch (error) {
      // Closed, it would be believed the next time.
      fchmodSync(descriptor, mode & 0o7777);
      throw error;
    }
    return true;
  });
}

/** Level by level: Node's recursive form never ends where a file system makes no folders, such as below /proc. */
function makeMissing(folder: string): void {
  const parent = path.dirname(folder);
  if (!existsSync(parent)) makeMissing(parent);
  try {
    mkdirSync(folder, { mode: folderMode });
  } catch (error) {
    // There already, or another process of ours was faster. A file in the way stays the error of the file system that
    // it is.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST" || lstatSync(folder).isFile()) throw error;
  }
}

/**
 * For those who only read: a folder itself, of this user, that nobody else may write to. False where there is nothing.
 * @throws {NotOwn}
 */
export function isOwnFolder(folder: string): boolean {
  try {
    withFolder(folder, (_descriptor, { uid, mode }) => {
      requireOwner(folder, uid);
      requireNoOtherWriter(folder, mode, "folder");
    });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

function withFolder<T>(folder: string, look: (descriptor: number, stats: Stats) => T): T {
  const descriptor = openFolder(folder);
  try {
    return look(descriptor, fstatSync(descriptor));
  } finally {
    closeSync(descriptor);
  }
}

function openFolder(folder: string): number {
  try {
    return openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch (error) {
    const stats = lstatSync(folder, { throwIfNoEntry: false });
    if (stats?.isSymbolicLink() === true) throw new NotOwn(`${folder} is a symbolic link: name the folder itself`);
    if (stats?.isDirectory() === false) throw new NotOwn(`${folder} is no folder`);
    // Another user's folder can often not even be opened; whose it is says more than that.
    if (stats !== undefined) requireOwner(folder, stats.uid);
    throw error;
  }
}

/** Nobody else comes in any more: what is there now is all that others have left. */
function closeToOthers(folder: string): void {
  for (const name of readdirSync(folder)) {
    const entry = path.join(folder, name);
    const stats = lstatSync(entry);
    try {
      requireOwner(entry, stats.uid);
    } catch (error) {
      throw new NotOwn(
        `${(error as Error).message}; others could write to ${folder} until now: remove it, and try again`,
      );
    }
    if (stats.isSymbolicLink()) continue;
    if ((stats.mode & openToOthers) !== 0) chmodSync(entry, stats.mode & 0o700);
    if (stats.isDirectory()) closeToOthers(entry);
  }
}
