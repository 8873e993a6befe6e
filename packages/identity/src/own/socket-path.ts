// Where the Unix sockets of a state directory lie: in it, or, where the kernel would not take so long a path, in a
// folder of this user that the state directory's name leads to. Both ends derive it; nobody reads it from a file.
import { createHash } from "node:crypto";
import { lstatSync, realpathSync, rmSync, statSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { machineUid, NotOwn, ownUid } from "./not-own.ts";
import { isOwnFolder, makeOwnFolder } from "./own-folder.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Linux's sun_path holds 108 bytes, macOS's 104, with the closing zero. */
const maxSocketPathBytes = 103;

/**
 * For who serves: the path, in a folder that is made when it is missing.
 * @throws {NotOwn} where somebody else has taken the folder's place
 */
export function makeSocketPath(stateFolder: string, name: string, env: Environment = process.env): string {
  const real = realpathSync(stateFolder);
  const direct = path.join(real, name);
  if (fits(direct)) return direct;
  const base = runtimeFolder(env) ?? temporaryFolder();
  const folder = path.join(base, idOf(real));
  makeOwnFolder(base);
  makeOwnFolder(folder);
  const short = path.join(folder, name);
  if (!fits(short))
    throw new Error(`${short}: a socket's path may have ${maxSocketPathBytes} bytes; set XDG_RUNTIME_DIR`);
  return short;
}

/**
 * For who asks: the path where the socket is, or would be first. Whoever serves may have had another environment.
 * @throws {NotOwn}
 */
export function findSocketPath(stateFolder: string, name: string, env: Environment = process.env): string {
  const real = realpathSync(stateFolder);
  const direct = path.join(real, name);
  if (fits(direct)) return direct;
  for (const base of shortBases(env)) {
    const socket = path.join(base, idOf(real), name);
    if (isOwnShortFolder(base, real) && isSocket(socket)) return socket;
  }
  const [first] = shortBases(env);
  return path.join(first!, idOf(real), name);
}

/** Removes what `makeSocketPath` made outside of a state folder, before that folder itself is removed. */
export function removeSocketFolder(stateFolder: string, env: Environment = process.env): void {
  if (lstatSync(stateFolder, { throwIfNoEntry: false }) === undefined) return;
  const real = realpathSync(stateFolder);
  try {
    for (const base of shortBases(env)) {
      if (isOwnShortFolder(base, real)) rmSync(path.join(base, idOf(real)), { recursive: true, force: true });
    }
  } catch (error) {
    if (!(error instanceof NotOwn)) throw error; // then it is not ours to remove
  }
}

/** Where a state folder's sockets may be, the likeliest first; the next one is looked at only when it is asked for. */
function* shortBases(env: Environment): Iterable<string> {
  const login = path.join("/run/user", String(machineUid()), "tulle");
  const runtime = runtimeFolder(env) ?? login;
  yield runtime;
  if (login !== runtime) yield login;
  yield temporaryFolder();
}

/** The base too: whoever owns it can put another folder of ours in the place of the one below it. */
function isOwnShortFolder(base: string, real: string): boolean {
  return isOwnFolder(base) && isOwnFolder(path.join(base, idOf(real)));
}

/** Of the XDG Base Directory Specification: it has to be this user's, with mode 0700; one that is not is not used. */
function runtimeFolder(env: Environment): string | undefined {
  const named = env["XDG_RUNTIME_DIR"] ?? "";
  if (!path.isAbsolute(named)) return undefined;
  const stats = statSync(named, { throwIfNoEntry: false });
  const isOwn = stats?.isDirectory() === true && stats.uid === ownUid() && (stats.mode & 0o077) === 0;
  return isOwn ? path.join(named, "tulle") : undefined;
}

function temporaryFolder(): string {
  const temporary = os.tmpdir();
  const stats = statSync(temporary, { throwIfNoEntry: false });
  if (stats === undefined) throw new NotOwn(`${temporary} is not there: set XDG_RUNTIME_DIR or TMPDIR`);
  const isSticky = (stats.mode & 0o1000) !== 0;
  if ((stats.mode & 0o022) !== 0 && !isSticky) {
    throw new NotOwn(
      `${temporary} lets other users replace what is in it (no sticky bit): set XDG_RUNTIME_DIR or TMPDIR`,
    );
  }
  // In a user namespace all of the machine's other users are nobody, root too; to him belongs this one.
  const isRoots = stats.uid === 0 || (temporary === "/tmp" && ownUid() !== machineUid());
  if (!isRoots && stats.uid !== ownUid()) throw new NotOwn(`${temporary} belongs to another user: set TMPDIR`);
  return path.join(temporary, `tulle-${machineUid()}`);
}

function idOf(folder: string): string {
  return createHash("sha256").update(folder).digest("hex").slice(0, 16);
}

function fits(socketPath: string): boolean {
  return Buffer.byteLength(socketPath) <= maxSocketPathBytes;
}

function isSocket(socketPath: string): boolean {
  return statSync(socketPath, { throwIfNoEntry: false })?.isSocket() ?? false;
}
