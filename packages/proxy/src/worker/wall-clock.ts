// The wall clock to the microsecond, told from the monotonic one, so that spans which begin within the same millisecond
// keep their order.

/** Where both clocks are read. */
export interface ClockSources {
  monotonicMs(): number;
  /** Whole milliseconds since 1970, cheaply. */
  coarseMs(): number;
  /** With fractions; a microsecond to read. */
  exactMs(): number;
}

const machineClocks: ClockSources = {
  monotonicMs: () => performance.now(),
  coarseMs: Date.now,
  exactMs: () => Number(Temporal.Now.instant().epochNanoseconds / 1000n) / 1000,
};

/** So often the distance of the two is looked at anew: a clock that is slewed goes wrong by half a microsecond. */
const holdsForMs = 1000;
/** What a turn may last. A wall clock that is further away was set, or the machine has slept. */
const tolerableMs = 50;
/** One reading of the wall clock between two of the monotonic one takes less, unless the thread was held up. */
const quickReadMs = 0.05;
const maxReadings = 3;

export class WallClock {
  readonly #sources: ClockSources;
  #offsetMs = 0;
  #dueMs = -Infinity;

  constructor(sources = machineClocks) {
    this.#sources = sources;
  }

  /** Milliseconds since 1970, with fractions, of a time of the monotonic clock that is not long ago. */
  atMs(monotonicMs: number): number {
    const distanceMs = this.#sources.coarseMs() - monotonicMs - this.#offsetMs;
    if (monotonicMs >= this.#dueMs || distanceMs > tolerableMs || distanceMs < -tolerableMs) this.#compare();
    return monotonicMs + this.#offsetMs;
  }

  #compare(): void {
    const sources = this.#sources;
    let leastMs = Infinity;
    for (let count = 0; count < maxReadings && leastMs > quickReadMs; count += 1) {
      const before = sources.monotonicMs();
      const exactMs = sources.exactMs();
      const after = sources.monotonicMs();
      if (after - before >= leastMs) continue;
      leastMs = after - before;
      this.#offsetMs = exactMs - (before + after) / 2;
      this.#dueMs = after + holdsForMs;
    }
  }
}
