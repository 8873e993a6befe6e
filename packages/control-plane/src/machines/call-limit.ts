// How often somebody may do a thing within a minute.

const windowMs = 60_000;
/** The oldest makes way: whoever has very many names gains what he would gain by waiting. */
const maxCallers = 4096;

export class CallLimit {
  readonly #most: number;
  readonly #nowMs: () => number;
  readonly #calls = new Map<string, { count: number; readonly sinceMs: number }>();

  constructor(most: number, nowMs: () => number) {
    this.#most = most;
    this.#nowMs = nowMs;
  }

  allows(caller: string): boolean {
    const found = this.#calls.get(caller);
    return found === undefined || found.count < this.#most || this.#nowMs() >= found.sinceMs + windowMs;
  }

  count(caller: string): void {
    const found = this.#calls.get(caller);
    if (found !== undefined && this.#nowMs() < found.sinceMs + windowMs) {
      found.count += 1;
      return;
    }
    this.#calls.delete(caller);
    this.#calls.set(caller, { count: 1, sinceMs: this.#nowMs() });
    const [oldest] = this.#calls.keys();
    if (this.#calls.size > maxCallers && oldest !== undefined) this.#calls.delete(oldest);
  }
}
