// Providers' endpoints on disk: a restarted control plane must not close the pages that people are signed in for until every
// provider has answered again.
import { readFile } from "node:fs/promises";
import { writeSecretFile } from "@tulle/identity";
import type { ProviderEndpoints } from "./provider-metadata.ts";

export type SavedEndpoints = ReadonlyMap<string, ProviderEndpoints>;

const names = ["authorizationEndpoint", "tokenEndpoint", "endSessionEndpoint"] as const;

/** Nothing when there is no file, or what lies there is none of ours. */
export async function readSavedEndpoints(file: string): Promise<SavedEndpoints> {
  let json: unknown;
  try {
    json = JSON.parse(await readFile(file, "utf8"));
  } catch {
    return new Map();
  }
  if (typeof json !== "object" || json === null) return new Map();
  return new Map(
    Object.entries(json).flatMap(([key, value]: [string, unknown]): [string, ProviderEndpoints][] => {
      if (typeof value !== "object" || value === null) return [];
      const fields = value as Readonly<Record<string, unknown>>;
      const urls = names.flatMap((name) => (isWebUrl(fields[name]) ? [[name, fields[name]] as const] : []));
      return [[key, Object.fromEntries(urls)]];
    }),
  );
}

function isWebUrl(value: unknown): value is string {
  return typeof value === "string" && /^https?:$/.test(URL.parse(value)?.protocol ?? "");
}

/** Writes one state after the other; of those that come during a write, the last. */
export class EndpointsFile {
  readonly #file: string;
  readonly #onError: (error: unknown) => void;
  #next: SavedEndpoints | undefined;
  #writing: Promise<void> | undefined;

  constructor(file: string, onError: (error: unknown) => void) {
    this.#file = file;
    this.#onError = onError;
  }

  save(endpoints: SavedEndpoints): void {
    this.#next = endpoints;
    this.#writing ??= this.#write();
  }

  /** What was saved last is on disk. */
  async close(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    for (let next = this.#next; next !== undefined; next = this.#next) {
      this.#next = undefined;
      try {
        await writeSecretFile(this.#file, `${JSON.stringify(Object.fromEntries(next), undefined, 2)}\n`);
      } catch (error) {
        this.#onError(error);
      }
    }
    this.#writing = undefined;
  }
}
