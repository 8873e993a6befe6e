// Which of many prefixes a text begins with, in the time of a binary search: an authorization policy may name
// thousands.

/** Ids under texts; `collect` finds those whose text is a prefix of a value. */
export class PrefixIndex {
  readonly #texts: readonly string[];
  readonly #ids: readonly (readonly number[])[];
  /** Index of the longest other text that is a prefix of this one; -1 = none. */
  readonly #parents: Int32Array;

  constructor(idsByText: ReadonlyMap<string, readonly number[]>) {
    this.#texts = [...idsByText.keys()].sort((a, b) => (a < b ? -1 : 1));
    this.#ids = this.#texts.map((text) => idsByText.get(text)!);
    this.#parents = new Int32Array(this.#texts.length);
    for (const [index, text] of this.#texts.entries()) {
      let parent = index - 1;
      while (parent >= 0 && !text.startsWith(this.#texts[parent]!)) parent = this.#parents[parent]!;
      this.#parents[index] = parent;
    }
  }

  /** Adds to `found` the ids of every text that `value` begins with. */
  collect(value: string, found: number[]): void {
    const texts = this.#texts;
    let low = 0;
    let high = texts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (texts[middle]! <= value) low = middle + 1;
      else high = middle;
    }
    // Texts between the longest prefix and the value begin with that prefix too: it is the last text before the value,
    // or one of the prefixes of that text.
    let index = low - 1;
    while (index >= 0 && !value.startsWith(texts[index]!)) index = this.#parents[index]!;
    while (index >= 0) {
      for (const id of this.#ids[index]!) found.push(id);
      index = this.#parents[index]!;
    }
  }
}
