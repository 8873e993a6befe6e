// A lock between test processes, held by a file with the holder's process id; a lock whose holder is gone is taken over.
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { waitFor } from "./processes.ts";

/** Runs `work` while no other process of this machine holds the same lock file. */
export async function withFileLock<T>(lockFile: string, work: () => Promise<T>, timeoutMs = 600_000): Promise<T> {
  await waitFor(() => tryLock(lockFile), { timeoutMs, intervalMs: 200, what: `the lock ${lockFile}` });
  try {
    return await work();
  } finally {
    await rm(lockFile, { force: true });
  }
}

async function tryLock(lockFile: string): Promise<boolean> {
  try {
    await writeFile(lockFile, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const holder = Number(await readFile(lockFile, "utf8").catch(() => ""));
  if (holder > 0 && !isAlive(holder)) {
    // Renaming first lets exactly one of several waiters clear a dead holder's file.
    const aside = `${lockFile}.${process.pid}`;
    await rename(lockFile, aside).catch(() => undefined);
    await rm(aside, { force: true });
  }
  return false;
}

function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
