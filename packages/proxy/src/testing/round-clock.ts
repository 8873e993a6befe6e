// A clock whose rounds of the event loop end when a test says so: until then what was written waits.
import { ManualClock } from "./manual-clock.ts";

export class RoundClock extends ManualClock {
  readonly #waiting: (() => void)[] = [];

  /** Somebody waits for the round's end. */
  get isAwaited(): boolean {
    return this.#waiting.length > 0;
  }

  override atRoundEnd(callback: () => void): void {
    this.#waiting.push(callback);
  }

  endRound(): void {
    for (const callback of this.#waiting.splice(0)) callback();
  }
}
