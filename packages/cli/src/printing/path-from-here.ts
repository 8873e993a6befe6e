// A place in a file as it can be typed here: a running instance knows files by their absolute paths.
import path from "node:path";

/** `file`, or the shorter way to it from `cwd` where it lies below. */
export function pathFromHere(file: string, cwd: string): string {
  return file.startsWith(`${cwd}${path.sep}`) ? path.relative(cwd, file) : file;
}
