// Password hashing with argon2id, bounded: hashing is the one step here that costs real CPU and memory on behalf of
// somebody who has not proved anything yet.
import { hash, verify } from "@node-rs/argon2";

export interface PasswordCost {
  readonly memoryKib: number;
  readonly iterations: number;
  readonly parallelism: number;
}

export const maxPasswordCharacters = 1024;

/** How many wait at most for a hash: of one name, and of all in one line. */
export interface QueueLimits {
  readonly concurrent: number;
  readonly waitingOfOne: number;
  readonly waiting: number;
}

/** Who waits for a hash. Each name has its turn, and those who are known stand in a line of their own. */
export interface Asker {
  /** The site of somebody whom nobody knows; the user of a browser that is known to be his. */
  readonly name: string;
  readonly isKnown: boolean;
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
   * tell which accounts exist. Many at once of one asker keep nobody else waiting.
   */
  verify(hashed: string | undefined, password: string, asker: Asker): Promise<boolean | Busy>;
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
    verify: async (hashed, password, asker) => {
      decoy ??= hash("decoy", options);
      const target = hashed ?? (await decoy);
      const matches = await queue.run(asker, () => verify(target, password.normalize("NFC")));
      if (typeof matches !== "boolean") return matches;
      return matches && hashed !== undefined;
    },
  };
}

/**
 * Each name in turn, so that who asks a hundred times at once waits for himself; and the two lines in turn, so that a
 * crowd from as many sites as may wait keeps no owner out of a browser that is known.
 */
class FairQueue {
  readonly #concurrent: number;
  readonly #known: Line;
  readonly #anybody: Line;
  /** The one that was served last is the last. */
  #lines: readonly Line[];
  #running = 0;
  #lastMs = 50;

  constructor(limits: QueueLimits) {
    this.#concurrent = limits.concurrent;
    this.#known = new Line(limits);
    this.#anybody = new Line(limits);
    this.#lines = [this.#known, this.#anybody];
  }

  async run<T>({ name, isKnown }: Asker, work: () => Promise<T>): Promise<T | Busy> {
    if (this.#running < this.#concurrent) this.#running += 1;
    else {
      const line = isKnown ? this.#known : this.#anybody;
      const hasTurn = await line.join(name);
      if (!hasTurn) return { waitMs: ((line.length + 1) * this.#lastMs) / this.#concurrent };
    }
    const began = performance.now();
    try {
      return await work();
    } finally {
      this.#lastMs = performance.now() - began;
      this.#next();
    }
  }

  #next(): void {
    const line = this.#lines.find(({ length }) => length > 0);
    if (line === undefined) {
      this.#running -= 1;
      return;
    }
    this.#lines = [...this.#lines.filter((other) => other !== line), line];
    line.callNext();
  }
}

/** Called with whether it is the turn; otherwise there was no room. */
type Waiting = (hasTurn: boolean) => void;

class Line {
  readonly #limits: QueueLimits;
  /** By name, in the order of their turns. */
  readonly #waiting = new Map<string, Waiting[]>();
  length = 0;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  join(name: string): Promise<boolean> {
    const own = this.#waiting.get(name) ?? [];
    if (own.length >= this.#limits.waitingOfOne) return Promise.resolve(false);
    if (this.length >= this.#limits.waiting && !this.#makeRoom(own.length)) return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    own.push(resolve);
    this.#waiting.set(name, own);
    this.length += 1;
    return promise;
  }

  /** The newest of who has most waiting gives way to one who has fewer. */
  #makeRoom(ownCount: number): boolean {
    let most: Waiting[] = [];
    for (const each of this.#waiting.values()) if (each.length > most.length) most = each;
    if (most.length <= ownCount + 1) return false;
    this.length -= 1;
    most.pop()!(false);
    return true;
  }

  callNext(): void {
    const [turn] = this.#waiting;
    if (turn === undefined) throw new Error("nobody waits");
    const [name, own] = turn;
    this.#waiting.delete(name);
    const first = own.shift()!;
    if (own.length > 0) this.#waiting.set(name, own);
    this.length -= 1;
    first(true);
  }
}
