// Health checks of all clusters share one bound: a push of many hosts, each of which is checked before it is used,
// shall not open a connection to each of them at once. Whoever finds it full waits in turn.
import type { DataPath } from "../../worker/data-path.ts";

export const defaultMaxChecksUnderWay = 256;

export interface QueuedCheck {
  /** Its turn has come. */
  beginCheck(): void;
}

export class CheckQueue {
  readonly dataPath: DataPath;
  readonly #maxUnderWay: number;
  readonly #underWay = new Set<QueuedCheck>();
  readonly #waiting = new Set<QueuedCheck>();

  constructor(dataPath: DataPath, maxUnderWay = defaultMaxChecksUnderWay) {
    this.dataPath = dataPath;
    this.#maxUnderWay = maxUnderWay;
  }

  /** Begins it, at once or later; it leaves when it is over. */
  enter(check: QueuedCheck): void {
    if (this.#underWay.size >= this.#maxUnderWay) {
      this.#waiting.add(check);
      return;
    }
    this.#underWay.add(check);
    check.beginCheck();
  }

  /** It is over, or wanted no more. */
  leave(check: QueuedCheck): void {
    if (!this.#underWay.delete(check)) {
      this.#waiting.delete(check);
      return;
    }
    const [first] = this.#waiting;
    if (first === undefined) return;
    this.#waiting.delete(first);
    this.enter(first);
  }
}
