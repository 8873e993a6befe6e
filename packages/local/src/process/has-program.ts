// Looks for a program before a pod counts on it.
import { accessSync, constants } from "node:fs";
import path from "node:path";

/** Whether a program can be started by this name or path. */
export function hasProgram(program: string, searchPath?: string): boolean {
  return findProgram(program, searchPath) !== undefined;
}

/** Its path; undefined where there is none. */
export function findProgram(program: string, searchPath = ""): string | undefined {
  const folders = program.includes(path.sep) ? [""] : searchPath.split(path.delimiter);
  return folders
    .map((folder) => path.join(folder, program))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
