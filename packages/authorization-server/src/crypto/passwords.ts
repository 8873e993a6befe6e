// Password hashing with argon2id, bounded: hashing is the one step here that costs real CPU and memory on behalf of
// somebody who has not proved anything yet.
import { hash, verify } from "@node-rs/argon2";

export interface PasswordCost {
  readonly memoryKib: number;
  readonly iterations: number;
  readonly parallelism: number;
}

export const maxPasswordCharacters = 1024;

export interface PasswordHasher {
  hash(password: string): Promise<string>;
  /**
   * Compares in the same time whether or not there is a hash to compare with, so that the answer's timing does not
   * tell which accounts exist. `"busy"` when too many comparisons wait already.
   */
  verify(hashed: string | undefined, password: string): Promise<boolean | "busy">;
}

export function passwordHasher(cost: PasswordCost, limits = { concurrent: 2, waiting: 64 }): PasswordHasher {
  const options = {
    // Argon2id; the package's enum exists for compilers only.
    algorithm: 2,
    memoryCost: cost.memoryKib,
    timeCost: cost.iterations,
    parallelism: cost.parallelism,
  };
  let running = 0;
  const waiting: Array<() => void> = [];
  let decoy: Promise<string> | undefined;

  async function bounded<T>(work: () => Promise<T>): Promise<T> {
    if (running >= limits.concurrent) await new Promise<void>((resolve) => waiting.push(resolve));
    running += 1;
    try {
      return await work();
    } finally {
      running -= 1;
      waiting.shift()?.();
    }
  }

  return {
    hash: (password) => bounded(() => hash(password.normalize("NFC"), options)),
    verify: async (hashed, password) => {
      if (waiting.length >= limits.waiting) return "busy";
      decoy ??= hash("decoy", options);
      const target = hashed ?? (await decoy);
      const matches = await bounded(() => verify(target, password.normalize("NFC")));
      return matches && hashed !== undefined;
    },
  };
}
