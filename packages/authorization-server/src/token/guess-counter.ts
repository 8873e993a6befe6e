// Counts failed client secrets, by client and address (RFC 6749 §2.3.1). In memory and per process: a secret has 32
// characters at least, so what has to be slowed down is the load of guessing, and the good path stays free of a read.
import type { ThrottlePolicy } from "../store/throttles.ts";
import { throttleWaitMs } from "../store/throttles.ts";

interface Guesses {
  failures: number;
  lastFailureAtMs: number;
}

export class GuessCounter {
  readonly #policy: ThrottlePolicy;
  readonly #nowMs: () => number;
  readonly #maxSubjects: number;
  readonly #guesses = new Map<string, Guesses>();

  constructor(policy: ThrottlePolicy, nowMs: () => number = Date.now, maxSubjects = 10_000) {
    this.#policy = policy;
    this.#nowMs = nowMs;
    this.#maxSubjects = maxSubjects;
  }

  waitMs(subject: string): number {
    const guesses = this.#guesses.get(subject);
    if (guesses === undefined) return 0;
    if (this.#nowMs() - guesses.lastFailureAtMs > this.#policy.forgetMs) {
      this.#guesses.delete(subject);
      return 0;
    }
    return throttleWaitMs(this.#policy, guesses.failures, guesses.lastFailureAtMs, this.#nowMs());
  }

  fail(subject: string): void {
    const failures = (this.#guesses.get(subject)?.failures ?? 0) + 1;
    // Deleting first moves the entry to the end, so that the oldest one is dropped when the map is full.
    this.#guesses.delete(subject);
    this.#guesses.set(subject, { failures, lastFailureAtMs: this.#nowMs() });
    if (this.#guesses.size > this.#maxSubjects) this.#guesses.delete(this.#guesses.keys().next().value!);
  }
}
