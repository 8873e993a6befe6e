// Password hashing with argon2id, bounded: hashing is the one step here that costs real CPU and memory on behalf of
// somebody who has not proved anything yet.
import { hash, verify } from "@node-rs/argon2";

export interface PasswordCost {
  readonly memoryKib: number;
  readonly iterations: number;
  readonly parallelism: number;
}

export const maxPasswordCharacters = 1024;

/** How many wait at most for a hash: of one network, and of all. */
export interface QueueLimits {
  readonly concurrent: number;
  readonly waitingOfOne: number;
  readonly waiting: number;
}

const defaultLimits: QueueLimits = { concurrent: 2, waitingOfOne: 8, waiting: 256 };

/** Too many comparisons wait already. */
export interface Busy {
  /** Until those that wait now are done. */
  readonly waitMs: number;
}

export interface PasswordHasher {
  hash(password: string): Promise<string>;
  /**
   * Compares in the same time whether or not there is a hash to compare with, so that the answer's timing does not
   * tell which accounts exist. `network` is who asks: many at once keep nobody else waiting.
   */
  verify(hashed: string | undefined, password: string, network: string): Promise<boolean | Busy>;
}

export function passwordHasher(cost: PasswordCost, limits: QueueLimits = defaultLimits): PasswordHasher {
  const options = {
    // Argon2id; the package's enum exists for compilers only.
    algorithm: 2,
    memoryCost: cost.memoryKib,
    timeCost: cost.iterations,
    parallelism: cost.parallelism,
  };
  const queue = new FairQueue(limits);
  let decoy: Promise<string> | undefined;
  return {
    // Whoever sets a password has shown who he is.
    hash: (password) => hash(password.normalize("NFC"), options),
    verify: async (hashed, password, network) => {
      decoy ??= hash("decoy", options);
      const target = hashed ?? (await decoy);
      const matches = await queue.run(network, () => verify(target, password.normalize("NFC")));
      if (typeof matches !== "boolean") return matches;
      return matches && hashed !== undefined;
    },
  };
}

interface Waiting {
  readonly begin: () => void;
  readonly giveUp: (busy: Busy) => void;
}

/** Each network in turn, so that who asks a hundred times at once waits for himself. */
class FairQueue {
  readonly #limits: QueueLimits;
  /** By network, in the order of their turns. */
  readonly #waiting = new Map<string, Waiting[]>();
  #waitingCount = 0;
  #running = 0;
  #lastMs = 50;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  async run<T>(network: string, work: () => Promise<T>): Promise<T | Busy> {
    if (this.#running >= this.#limits.concurrent) {
      const busy = await this.#wait(network);
      if (busy !== undefined) return busy;
    } else {
      this.#running += 1;
    }
    const began = performance.now();
    try {
      return await work();
    } finally {
      this.#lastMs = performance.now() - began;
      this.#next();
    }
  }

  #wait(network: string): Promise<Busy | undefined> {
    const { promise, resolve } = Promise.withResolvers<Busy | undefined>();
    const own = this.#waiting.get(network) ?? [];
    if (own.length >= this.#limits.waitingOfOne) return Promise.resolve(this.#busy());
    if (this.#waitingCount >= this.#limits.waiting && !this.#makeRoom(own.length)) return Promise.resolve(this.#busy());
    own.push({ begin: () => resolve(undefined), giveUp: resolve });
    this.#waiting.set(network, own);
    this.#waitingCount += 1;
    return promise;
  }

  /** The newest of who has most waiting gives way to one who has fewer. */
  #makeRoom(ownCount: number): boolean {
    let most: Waiting[] = [];
    for (const each of this.#waiting.values()) if (each.length > most.length) most = each;
    if (most.length <= ownCount + 1) return false;
    most.pop()!.giveUp(this.#busy());
    this.#waitingCount -= 1;
    return true;
  }

  #busy(): Busy {
    return { waitMs: ((this.#waitingCount + 1) * this.#lastMs) / this.#limits.concurrent };
  }

  #next(): void {
    const [turn] = this.#waiting;
    if (turn === undefined) {
      this.#running -= 1;
      return;
    }
    const [network, own] = turn;
    this.#waiting.delete(network);
    const first = own.shift()!;
    if (own.length > 0) this.#waiting.set(network, own);
    this.#waitingCount -= 1;
    first.begin();
  }
}
