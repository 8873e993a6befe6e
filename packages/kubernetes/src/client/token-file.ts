// A token in a file that somebody replaces: a kubelet does so for each pod's account before the token's hour is over.
import { readFile } from "node:fs/promises";
import type { Clock } from "@tulle/timing";
import type { Credentials, CredentialSource } from "./cluster-access.ts";

/** As client-go has it: often enough for a token that lives ten minutes, its shortest time. */
const rereadMs = 60_000;

export class TokenFile implements CredentialSource {
  readonly #file: string;
  readonly #clock: Clock;
  #token: string | undefined;
  #readAtMs = 0;

  constructor(file: string, clock: Clock) {
    this.#file = file;
    this.#clock = clock;
  }

  async current(): Promise<Credentials> {
    const nowMs = this.#clock.nowMs();
    if (this.#token !== undefined && nowMs - this.#readAtMs < rereadMs) return { token: this.#token };
    try {
      const token = (await readFile(this.#file, "utf8")).trim();
      if (token === "") throw new Error("the file is empty");
      this.#token = token;
      this.#readAtMs = nowMs;
    } catch (error) {
      // The one of before may hold for a while, as for the moment in which the file is replaced.
      if (this.#token === undefined)
        throw new Error(`no token in ${this.#file}: ${(error as Error).message}`, { cause: error });
    }
    return { token: this.#token };
  }

  refused(): void {
    this.#readAtMs = 0;
  }
}
