// Looks for a program before a pod counts on it.
import { accessSync, constants } from "node:fs";
import path from "node:path";

/** Whether a program can be started by this name or path. */
export function hasProgram(program: string, searchPath = ""): boolean {
  const folders = program.includes(path.sep) ? [""] : searchPath.split(path.delimiter);
  return folders.some((folder) => {
    try {
      accessSync(path.join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
