// Runs OpenSSL, the oracle of this package's tests, in a folder that ends with the test.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { debianTool } from "../../../../tests/tools/debian-tool.ts";

export interface OpenSsl {
  readonly folder: string;
  /** Standard output of a run in the folder. @throws {Error} with what it said, for an exit status other than 0 */
  readonly run: (...args: readonly string[]) => Promise<string>;
  /** The path of a new file in the folder. */
  readonly file: (name: string, content: string) => Promise<string>;
}

/** A test, or who else says when all is over. */
interface Ending {
  readonly after: (end: () => Promise<void>) => unknown;
}

export async function openssl(t: Ending): Promise<OpenSsl> {
  const program = await debianTool("openssl");
  const folder = await temporaryFolder(t);
  return {
    folder,
    run: (...args) => {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      execFile(program, args, { cwd: folder, timeout: 60_000 }, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`openssl ${args[0]}: ${stdout}${stderr}`, { cause: error }));
      });
      return promise;
    },
    file: async (name, content) => {
      const file = path.join(folder, name);
      await writeFile(file, content);
      return file;
    },
  };
}

/** An empty folder that is removed after the test. */
export async function temporaryFolder(t: Ending): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-identity-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
