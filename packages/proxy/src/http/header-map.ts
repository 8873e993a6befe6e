// The header list of a message, codec-free: names lower-case, order and repetition kept. One flat array, because a
// request's headers are walked far more often than they are looked up (a Map per request cost more than the scan).

export class HeaderMap {
  /**
   * `[name0, value0, name1, value1, …]`; names are lower-case. Codecs read and write it directly. It never comes of
   * `flat` or `flatMap`, whose arrays count as ones with holes: `get` was then compiled and thrown away again for as
   * long as both kinds came by (measured: 60 µs a request in the place of 41).
   */
  readonly entries: string[];

  constructor(entries: string[] = []) {
    this.entries = entries;
  }

  static of(pairs: Iterable<readonly [name: string, value: string]>): HeaderMap {
    const headers = new HeaderMap();
    for (const [name, value] of pairs) headers.append(name, value);
    return headers;
  }

  /** The first value of the header, or undefined. */
  get(name: string): string | undefined {
    const entries = this.entries;
    for (let index = 0; index < entries.length; index += 2) {
      if (entries[index] === name) return entries[index + 1];
    }
    return undefined;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  /** All values joined by commas (RFC 9110 §5.3), as Envoy's header matchers see a repeated header. */
  getJoined(name: string): string | undefined {
    const entries = this.entries;
    let joined: string | undefined;
    for (let index = 0; index < entries.length; index += 2) {
      if (entries[index] === name)
        joined = joined === undefined ? entries[index + 1] : `${joined},${entries[index + 1]}`;
    }
    return joined;
  }

  /** Replaces every occurrence by one value; adds the header when it is absent. */
  set(name: string, value: string): void {
    const entries = this.entries;
    for (let index = 0; index < entries.length; index += 2) {
      if (entries[index] !== name) continue;
      entries[index + 1] = value;
      this.#removeFrom(index + 2, name);
      return;
    }
    entries.push(name, value);
  }

  append(name: string, value: string): void {
    this.entries.push(name, value);
  }

  remove(name: string): void {
    this.#removeFrom(0, name);
  }

  /** Removes every header whose name the predicate accepts. */
  removeWhere(predicate: (name: string) => boolean): void {
    const entries = this.entries;
    let kept = 0;
    for (let index = 0; index < entries.length; index += 2) {
      if (predicate(entries[index]!)) continue;
      entries[kept] = entries[index]!;
      entries[kept + 1] = entries[index + 1]!;
      kept += 2;
    }
    entries.length = kept;
  }

  clone(): HeaderMap {
    return new HeaderMap(this.entries.slice());
  }

  #removeFrom(start: number, name: string): void {
    const entries = this.entries;
    let kept = start;
    for (let index = start; index < entries.length; index += 2) {
      if (entries[index] === name) continue;
      if (kept !== index) {
        entries[kept] = entries[index]!;
        entries[kept + 1] = entries[index + 1]!;
      }
      kept += 2;
    }
    entries.length = kept;
  }
}
