// A named handle whose content is replaced when configuration changes. Routes hold the slot of their cluster, listeners
// the slot of their route table: an update of one never rebuilds the other, and a request follows references only.

export class Slot<T> {
  readonly name: string;
  /** Undefined while nothing of that name has been received (a request then gets 503 NC, or 404 NR without a route table). */
  current: T | undefined = undefined;

  constructor(name: string) {
    this.name = name;
  }
}
