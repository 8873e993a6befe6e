// A folder for what a test starts. It goes when the process of the test file ends: hooks of a test run in the order in
// which they were given, so that a folder which one of them removes may still be written to by what the next one stops.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const folders = new Set<string>();

process.once("exit", () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** `name` is the begin of the folder's name. */
export function temporaryFolder(name: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), name));
  folders.add(folder);
  return folder;
}
