// One pass of the event loop over a socket that has become readable, or over the timers that are due. What is written during it
// leaves at its end in one write for each socket, and it reads the clock once.
import type { Clock } from "./clock.ts";

/** Something with output that waits for the end of the turn. */
export interface Flushable {
  flush(): void;
}

export class Turn {
  readonly #clock: Clock;
  /** Slots are used again and never given back: their number is that of the outputs of the busiest turn. */
  readonly #waiting: (Flushable | undefined)[] = [];
  #waitingCount = 0;
  #depth = 0;
  #nowMs: number;
  /** An empty turn, whose end flushes: a flush may begin turns of its own, which must not be the outermost. */
  readonly #flushLater = (): void => {
    this.begin();
    this.end();
  };

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#nowMs = clock.monotonicMs();
  }

  /** Monotonic time of the turn's beginning; read anew outside of one. */
  get nowMs(): number {
    return this.#depth > 0 ? this.#nowMs : this.#clock.monotonicMs();
  }

  begin(): void {
    if (this.#depth === 0) this.#nowMs = this.#clock.monotonicMs();
    this.#depth += 1;
  }

  end(): void {
    if (this.#depth === 1 && this.#waitingCount > 0) this.#flushAll();
    this.#depth -= 1;
  }

  run(action: () => void): void {
    this.begin();
    try {
      action();
    } finally {
      this.end();
    }
  }

  /** The output leaves at the end of the turn; outside of one, before the event loop goes on. */
  enqueue(output: Flushable): void {
    this.#waiting[this.#waitingCount] = output;
    this.#waitingCount += 1;
    if (this.#depth === 0 && this.#waitingCount === 1) process.nextTick(this.#flushLater);
  }

  #flushAll(): void {
    const waiting = this.#waiting;
    for (let index = 0; index < this.#waitingCount; index += 1) {
      waiting[index]!.flush();
      waiting[index] = undefined;
    }
    this.#waitingCount = 0;
  }
}
