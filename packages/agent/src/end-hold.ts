// How long programs of a pod that leaves are kept from ending. Clients learn that it leaves when the control plane has
// told their proxies, or kube-proxy its node: in a moment, or in seconds where nodes have much to do. Who still asks
// has not learned it.
import { setTimeout as pause } from "node:timers/promises";

export interface EndHoldOptions {
  /** Requests and connections that the workload has been sent so far; undefined where the proxy does not answer. */
  readonly taken: () => Promise<number | undefined>;
  readonly leastMs: number;
  /** Some clients never learn it: they know the pod's address by themselves. */
  readonly mostMs: number;
  readonly now?: () => number;
}

/** Nobody asks any more who has not asked for this long. */
const quietMs = 1000;
/** Counts are read so often, however many hold. */
const pollMs = 250;

export class EndHold {
  readonly #options: EndHoldOptions;
  readonly #now: () => number;
  #held = 0;
  #taken: number | undefined;
  #grewAtMs = 0;

  constructor(options: EndHoldOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Resolves after the least time once nobody asks any more, or after the longest. */
  async ended(): Promise<void> {
    const { leastMs, mostMs } = this.#options;
    const beganMs = this.#now();
    this.#held += 1;
    if (this.#held === 1) void this.#watch();
    await pause(leastMs, undefined, { ref: false });
    while (this.#now() - beganMs < mostMs && this.#now() - this.#grewAtMs < quietMs)
      await pause(pollMs, undefined, { ref: false });
    this.#held -= 1;
  }

  async #watch(): Promise<void> {
    while (this.#held > 0) {
      const taken = await this.#options.taken();
      if (taken !== this.#taken) {
        this.#taken = taken;
        this.#grewAtMs = this.#now();
      }
      await pause(pollMs, undefined, { ref: false });
    }
  }
}
