// A file system of a few kilobytes, to find out what happens when it is full.
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import path from "node:path";
import { lastLines, runCommand } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

export interface TinyDisk extends AsyncDisposable {
  /** Takes every byte that is left. */
  fill(): void;
  /** Gives back what `fill` has taken. */
  free(): void;
}

/** Mounts it at a folder that exists; what was in there is hidden until it is disposed of. Only root may mount. */
export async function mountTinyDisk(folder: string, bytes: number): Promise<TinyDisk> {
  const mounted = await runCommand("mount", ["-t", "tmpfs", "-o", `size=${bytes},mode=0700`, "tmpfs", folder]);
  if (mounted.code !== 0)
    throw new ToolUnavailable("a file system of a test's own", `it takes root to mount one: ${lastLines(mounted)}`);
  const filler = path.join(folder, "filler");
  return {
    fill: () => {
      const descriptor = openSync(filler, "a");
      // Ever smaller pieces, down to the last byte.
      for (let size = 1 << 20; size >= 1;) {
        try {
          if (writeSync(descriptor, Buffer.alloc(size)) < size) size = Math.floor(size / 2);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
          size = Math.floor(size / 2);
        }
      }
      closeSync(descriptor);
    },
    free: () => rmSync(filler, { force: true }),
    // Lazily: a program that still holds a file of it must not keep the test from ending.
    [Symbol.asyncDispose]: async () => void (await runCommand("umount", ["-l", folder])),
  };
}
