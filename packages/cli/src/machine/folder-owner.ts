// The state of a captured machine belongs to the proxy's user; what root does with it, root does as that user, so that
// no file of root's lies there.
import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync } from "node:fs";
import path from "node:path";

/** Made where it is missing, for that user; one of root's becomes that user's while it is empty. */
export function giveFolder(folder: string, user: number): void {
  mkdirSync(path.dirname(folder), { recursive: true });
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    if (lstatSync(folder).uid !== 0 || readdirSync(folder).length > 0) return;
    chmodSync(folder, 0o700);
  }
  chownSync(folder, user, user);
}

/** Undefined where there is no such folder. */
export function folderOwner(folder: string): number | undefined {
  return lstatSync(folder, { throwIfNoEntry: false })?.uid;
}

/** Runs the work as whoever has the folder, where this is root; else as it is. */
export async function asOwnerOf<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  if (stats === undefined || process.geteuid?.() !== 0 || stats.uid === 0) return work();
  process.setegid!(stats.gid);
  process.seteuid!(stats.uid);
  try {
    return await work();
  } finally {
    process.seteuid!(0);
    process.setegid!(0);
  }
}
