// A named handle whose content is replaced when configuration changes. Routes hold the slot of their cluster, listeners
// the slot of their route table: an update of one never rebuilds the other, and a request follows references only.

export class Slot<T> {
  readonly name: string;
  /**
   * Undefined while nothing of that name has been received (a request then gets 503 NC, or 404 NR without a route
   * table).
   */
  current: T | undefined = undefined;

  constructor(name: string) {
    this.name = name;
  }
}

/** Slots by name. */
export class SlotTable<T> {
  readonly #slots = new Map<string, Slot<T>>();

  get(name: string): Slot<T> {
    let slot = this.#slots.get(name);
    if (slot === undefined) {
      slot = new Slot<T>(name);
      this.#slots.set(name, slot);
    }
    return slot;
  }

  known(name: string): Slot<T> | undefined {
    return this.#slots.get(name);
  }

  /** Forgets slots that are empty and that nobody names any more. */
  prune(isNamed: (name: string) => boolean): void {
    for (const [name, slot] of this.#slots) {
      if (slot.current === undefined && !isNamed(name)) this.#slots.delete(name);
    }
  }

  values(): IterableIterator<Slot<T>> {
    return this.#slots.values();
  }
}
