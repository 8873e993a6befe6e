// A copy of the mesh's roots that every proxy may read, in a folder beside the authority's, which holds its key.
import { chmodSync, mkdirSync, readFileSync, renameSync, unwatchFile, watchFile, writeFileSync } from "node:fs";
import path from "node:path";

/** The authority replaces its file now and then; proxies look at theirs when they connect. */
const lookEveryMs = 1000;

export class PublicRoots {
  readonly folder: string;
  readonly file: string;
  readonly #source: string;

  constructor(stateFolder: string) {
    this.#source = path.join(stateFolder, "ca", "root-cert.pem");
    this.folder = path.join(stateFolder, "roots");
    this.file = path.join(this.folder, path.basename(this.#source));
    mkdirSync(this.folder, { recursive: true });
    chmodSync(this.folder, 0o755);
    this.#copy();
    watchFile(this.#source, { interval: lookEveryMs, persistent: false }, this.#copy);
  }

  #copy = (): void => {
    try {
      const draft = path.join(this.folder, ".draft");
      writeFileSync(draft, readFileSync(this.#source));
      chmodSync(draft, 0o644);
      renameSync(draft, this.file);
    } catch {
      // It is not there yet; the next look may find it.
    }
  };

  close(): void {
    unwatchFile(this.#source, this.#copy);
  }
}
