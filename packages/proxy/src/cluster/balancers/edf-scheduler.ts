// Earliest deadline first: hosts come up in proportion to their weights, evenly interleaved (Envoy: EdfScheduler). A
// binary heap ordered by deadline, then by arrival.

interface Entry<T> {
  readonly item: T;
  deadline: number;
  order: number;
}

export class EdfScheduler<T> {
  readonly #heap: Entry<T>[] = [];
  readonly #weightOf: (item: T) => number;
  #time = 0;
  #order = 0;

  /** `weightOf` is asked each time an item goes back, so that it may change; it must be positive. */
  constructor(items: readonly T[], weightOf: (item: T) => number) {
    this.#weightOf = weightOf;
    for (const item of items) this.#push({ item, deadline: this.#deadline(item), order: this.#nextOrder() });
  }

  /** Takes the item that is due and puts it back by its weight; undefined when there are none. */
  pick(): T | undefined {
    const top = this.#heap[0];
    if (top === undefined) return undefined;
    this.#time = top.deadline;
    top.deadline = this.#deadline(top.item);
    top.order = this.#nextOrder();
    this.#sink(0);
    return top.item;
  }

  #deadline(item: T): number {
    return this.#time + 1 / this.#weightOf(item);
  }

  #nextOrder(): number {
    this.#order += 1;
    return this.#order;
  }

  #isBefore(a: Entry<T>, b: Entry<T>): boolean {
    return a.deadline < b.deadline || (a.deadline === b.deadline && a.order < b.order);
  }

  #push(entry: Entry<T>): void {
    const heap = this.#heap;
    let index = heap.push(entry) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#isBefore(entry, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = entry;
  }

  #sink(start: number): void {
    const heap = this.#heap;
    const entry = heap[start]!;
    let index = start;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && this.#isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (!this.#isBefore(heap[child]!, entry)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = entry;
  }
}
