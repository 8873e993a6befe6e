// The folder of what tests fetch or build once: it outlives their runs, and several of them may fill it at the same
// time.
import { createHash } from "node:crypto";
import { access, glob, readFile } from "node:fs/promises";
import path from "node:path";

export const cacheFolder = path.resolve(import.meta.dirname, "../../.cache");

export function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

/** Twelve digits that stand for the names and contents of the files of a folder that match the pattern. */
export async function digestOf(folder: string, pattern: string): Promise<string> {
  const hash = createHash("sha256");
  const files = await Array.fromAsync(glob(pattern, { cwd: folder }));
  for (const file of files.sort()) hash.update(file).update(await readFile(path.join(folder, file)));
  return hash.digest("hex").slice(0, 12);
}
