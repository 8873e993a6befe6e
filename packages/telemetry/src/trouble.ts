// Something that fails again and again for one reason, such as a disk that is full: said once when it begins, and once
// when it is over.
import type { LogFields, Logger } from "./log.ts";

export class Trouble {
  readonly #log: Pick<Logger, "error" | "info">;
  #stands = false;

  constructor(log: Pick<Logger, "error" | "info">) {
    this.#log = log;
  }

  /** It has failed: told unless it stands already. */
  begin(message: string, fields?: LogFields): void {
    if (this.#stands) return;
    this.#stands = true;
    this.#log.error(message, fields);
  }

  /** It works: told where it did not before. */
  end(message: string, fields?: LogFields): void {
    if (!this.#stands) return;
    this.#stands = false;
    this.#log.info(message, fields);
  }
}
