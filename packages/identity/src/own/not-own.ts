// What is refused because somebody else could have put it there, or could read what we put there; with the words that
// say so.
import { readFileSync } from "node:fs";

/** A folder or file that does not belong to this user alone. The message is for people, and names the path. */
export class NotOwn extends Error {
  override readonly name = "NotOwn";
}

/** The user that this process acts as. Root too trusts only what is root's: it is refused what is another user's. */
export function ownUid(): number {
  return process.geteuid?.() ?? 0;
}

/** The same user by the machine's number, where this process is in a user namespace, which gives users others. */
export function machineUid(): number {
  const own = ownUid();
  // user_namespaces(7): the first number inside, the first one outside, how many.
  for (const line of textOf("/proc/self/uid_map").split("\n")) {
    const [inside = 0, outside = 0, count = 0] = line.trim().split(/\s+/).map(Number);
    if (own >= inside && own < inside + count) return outside + own - inside;
  }
  return own;
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** `ann (uid 1000)`, by the list of users of this machine; `uid 1000` where it does not say. */
export function userName(uid: number): string {
  // Without the list the number has to do.
  const users = textOf("/etc/passwd").split("\n");
  const entry = users.find((line) => line.split(":")[2] === String(uid));
  return entry === undefined ? `uid ${uid}` : `${entry.split(":")[0]} (uid ${uid})`;
}

/** @throws {NotOwn} */
export function requireOwner(path: string, uid: number): void {
  if (uid === ownUid()) return;
  throw new NotOwn(`${path} belongs to user ${userName(uid)}, and this is user ${userName(ownUid())}`);
}

/** Beyond this bit pattern, whoever is not the owner could have changed what is there. */
const writableByOthers = 0o022;
export const openToOthers = 0o077;

/** @throws {NotOwn} */
export function requireNoOtherWriter(path: string, mode: number, what: "file" | "folder"): void {
  if ((mode & writableByOthers) === 0) return;
  const shown = (mode & 0o777).toString(8).padStart(3, "0");
  throw new NotOwn(`${path} may be written by other users (mode ${shown}): look at the ${what}, then chmod go-w it`);
}
