// The authority's state as files of one control plane: `authority.json` (0600) and, for everyone to read,
// `root-cert.pem`. Nobody else writes them.
import { readFile } from "node:fs/promises";
import path from "node:path";
import { writeSecretFile } from "../secret-file.ts";
import type { AuthorityStorage } from "./authority-storage.ts";
import type { CheckedAuthority } from "./check-authority.ts";
import { loadCacerts } from "./load-cacerts.ts";

export class AuthorityFolder implements AuthorityStorage {
  readonly place: string;
  readonly givenPlace: string | undefined;
  readonly #rootsFile: string;

  /** `cacertsFolder` holds Istio's file names. */
  constructor(folder: string, cacertsFolder?: string) {
    this.place = path.join(folder, "authority.json");
    this.givenPlace = cacertsFolder;
    this.#rootsFile = path.join(folder, "root-cert.pem");
  }

  async read(): Promise<string | undefined> {
    try {
      return await readFile(this.place, "utf8");
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") return undefined;
      throw new Error(`${this.place}: it cannot be read (${code ?? String(error)})`, { cause: error });
    }
  }

  async write(state: string, rootsPem: string): Promise<boolean> {
    await writeSecretFile(this.place, state);
    await writeSecretFile(this.#rootsFile, rootsPem, 0o644);
    return true;
  }

  async readGiven(nowMs: number): Promise<CheckedAuthority | undefined> {
    return this.givenPlace === undefined ? undefined : loadCacerts(this.givenPlace, nowMs);
  }

  async keepRoots(rootsPem: string): Promise<void> {
    const found = await readFile(this.#rootsFile, "utf8").catch(() => undefined);
    if (found !== rootsPem) await writeSecretFile(this.#rootsFile, rootsPem, 0o644);
  }
}
