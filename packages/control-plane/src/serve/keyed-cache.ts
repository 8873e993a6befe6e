// What a pure function made of sections, by their keys. The function sees the section and nothing else, so that nothing
// else can change what it should have made.
import type { Keyed } from "../scope/keyed.ts";

export class KeyedCache<Section, Result> {
  readonly #translate: (section: Section) => Result;
  readonly #results = new Map<string, Result>();

  constructor(translate: (section: Section) => Result) {
    this.#translate = translate;
  }

  get(section: Keyed<Section>): Result {
    let result = this.#results.get(section.key);
    if (result === undefined) this.#results.set(section.key, (result = this.#translate(section.value)));
    return result;
  }

  /** Forgets what no key of these stands for. */
  keepOnly(keys: ReadonlySet<string>): void {
    for (const key of this.#results.keys()) if (!keys.has(key)) this.#results.delete(key);
  }
}
