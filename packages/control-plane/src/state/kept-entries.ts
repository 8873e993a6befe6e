// What was fetched and has to outlive this process, entry by entry: the keys of issuers, the endpoints of providers.
// What is damaged is worth no more than what is missing, since it can be fetched again.
import type { KeptTexts } from "./state-folder.ts";

export interface KeptEntriesOptions<Value> {
  readonly texts: Pick<KeptTexts, "read" | "write">;
  readonly name: string;
  /** Undefined for what is no such value. */
  readonly parse: (value: unknown) => Value | undefined;
  readonly onProblem: (error: unknown) => void;
}

export class KeptEntries<Value> {
  readonly #options: KeptEntriesOptions<Value>;
  /** Of an earlier run. */
  readonly saved: ReadonlyMap<string, Value>;
  #next: ReadonlyMap<string, Value> | undefined;
  #writing: Promise<void> | undefined;

  private constructor(options: KeptEntriesOptions<Value>, saved: ReadonlyMap<string, Value>) {
    this.#options = options;
    this.saved = saved;
  }

  static async open<Value>(options: KeptEntriesOptions<Value>): Promise<KeptEntries<Value>> {
    let json: unknown;
    try {
      json = JSON.parse((await options.texts.read(options.name))?.text ?? "{}");
    } catch {
      json = {};
    }
    const entries = Object.entries(typeof json === "object" && json !== null ? json : {});
    const saved = entries.flatMap(([key, value]: [string, unknown]): readonly [string, Value][] => {
      const parsed = options.parse(value);
      return parsed === undefined ? [] : [[key, parsed]];
    });
    return new KeptEntries(options, new Map(saved));
  }

  /** Writes one version after another; of those that wait, the newest alone. */
  save(entries: ReadonlyMap<string, Value>): void {
    this.#next = entries;
    this.#writing ??= this.#write();
  }

  /** Resolves when what was saved last is written, or could not be. */
  async close(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { texts, name, onProblem } = this.#options;
    for (let next = this.#next; next !== undefined; next = this.#next) {
      this.#next = undefined;
      try {
        await texts.write(name, `${JSON.stringify(Object.fromEntries(next), undefined, 2)}\n`);
      } catch (error) {
        onProblem(error);
      }
    }
    this.#writing = undefined;
  }
}
