// Keys and other secrets on disk: readable by their owner alone, and either the old or the new content, whatever dies
// when.
import { randomBytes } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import path from "node:path";
import { makeOwnFolder } from "./own/own-folder.ts";

/**
 * Replaces a file's content in one step. Its folder is made where it is missing, and is this user's alone
 * (`makeOwnFolder`). The file has the given mode (0600 unless told) whatever the umask, and never a wider one, because
 * it is made under another name and renamed.
 */
export async function writeSecretFile(file: string, content: string, mode = 0o600): Promise<void> {
  const folder = path.dirname(file);
  makeOwnFolder(folder);
  const draft = path.join(folder, `.${path.basename(file)}.${randomBytes(6).toString("hex")}`);
  try {
    // "wx" refuses a file or link that somebody else put there.
    const handle = await open(draft, "wx", mode);
    try {
      await handle.chmod(mode);
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncFolder(folder);
}

/** The new name lies in the folder, which has a page of its own to be flushed. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
