// How long a proxy takes to have what a change means for it: from the change until it has answered every response of
// the push. Istio's clock stops when the last of them is handed to gRPC; a proxy that takes long to apply is seen here.
import type { Clock } from "@tulle/timing";
import type { Histogram } from "@tulle/telemetry";

export class Convergence {
  readonly #seconds: Pick<Histogram, "record">;
  readonly #clock: Pick<Clock, "nowMs">;
  /** Nonces of what the proxy has not answered, with their types, the oldest first. */
  readonly #unanswered = new Map<string, string>();
  #sinceMs: number | undefined;
  readonly #onSettled: () => void;

  /** `onSettled`: the proxy has answered all that was meant for it, or nothing was. */
  constructor(seconds: Pick<Histogram, "record">, clock: Pick<Clock, "nowMs">, onSettled: () => void) {
    this.#seconds = seconds;
    this.#clock = clock;
    this.#onSettled = onSettled;
  }

  get isSettled(): boolean {
    return this.#sinceMs === undefined;
  }

  /** A push has just been declared. `sinceMs` is when the first of its changes came. */
  pushed(sinceMs: number): void {
    this.#sinceMs ??= sinceMs;
    // The server sends what was declared first. A push that means nothing for the proxy sends nothing.
    queueMicrotask(() => {
      if (this.#unanswered.size > 0) return;
      this.#sinceMs = undefined;
      this.#onSettled();
    });
  }

  sent(type: string, nonce: string): void {
    this.#unanswered.set(nonce, type);
  }

  /** An answer holds for the responses of its type before it, too. `hasAll`: nothing more waits to be sent. */
  answered(type: string, nonce: string, hasAll: () => boolean): void {
    for (const [each, typeOfEach] of this.#unanswered) {
      if (typeOfEach === type) this.#unanswered.delete(each);
      if (each === nonce) break;
    }
    if (this.#unanswered.size > 0 || this.#sinceMs === undefined) return;
    // What the answer lets go, such as routes after their clusters, is sent before this turn ends.
    queueMicrotask(() => {
      const sinceMs = this.#sinceMs;
      if (this.#unanswered.size > 0 || sinceMs === undefined || !hasAll()) return;
      this.#sinceMs = undefined;
      this.#seconds.record((this.#clock.nowMs() - sinceMs) / 1000);
      this.#onSettled();
    });
  }
}
