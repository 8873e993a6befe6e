// Fetched keys on disk: a control plane that starts anew while an issuer is down goes on with the last ones. They are public,
// and a file that is damaged is worth no more than none.
import { readFile, rename, writeFile } from "node:fs/promises";
import { parseKeySet } from "@tulle/config";

export interface SavedKeySet {
  readonly jwks: string;
  /** Milliseconds since 1970. */
  readonly fetchedAtMs: number;
}

/** By `jwksLocationKey`. */
export type SavedKeys = ReadonlyMap<string, SavedKeySet>;

export async function readSavedKeys(file: string): Promise<SavedKeys> {
  let document: unknown;
  try {
    document = JSON.parse(await readFile(file, "utf8"));
  } catch {
    return new Map();
  }
  if (typeof document !== "object" || document === null) return new Map();
  return new Map(
    Object.entries(document).flatMap(([key, value]: [string, unknown]): readonly [string, SavedKeySet][] => {
      if (typeof value !== "object" || value === null || !("jwks" in value) || !("fetchedAtMs" in value)) return [];
      const { jwks, fetchedAtMs } = value;
      if (typeof jwks !== "string" || typeof fetchedAtMs !== "number") return [];
      const keys = parseKeySet(jwks);
      return "text" in keys ? [[key, { jwks: keys.text, fetchedAtMs }]] : [];
    }),
  );
}

/** Writes one version after another; of those that wait, the newest alone. */
export class KeysFile {
  readonly #file: string;
  readonly #onProblem: (error: unknown) => void;
  #next: string | undefined;
  #writing: Promise<void> | undefined;

  constructor(file: string, onProblem: (error: unknown) => void) {
    this.#file = file;
    this.#onProblem = onProblem;
  }

  save(keys: SavedKeys): void {
    this.#next = JSON.stringify(Object.fromEntries(keys));
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Resolves when all is written. */
  async close(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    try {
      while (this.#next !== undefined) {
        const text = this.#next;
        this.#next = undefined;
        await writeFile(`${this.#file}.new`, text, { mode: 0o600 });
        await rename(`${this.#file}.new`, this.#file);
      }
    } catch (error) {
      this.#onProblem(error);
    }
  }
}
