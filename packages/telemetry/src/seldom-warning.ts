// A warning about something that others can make happen as often as they like: told at most once a second, with how
// often it was.
import type { LogFields, Logger } from "./log.ts";

const tellEveryMs = 1000;

export class SeldomWarning {
  readonly #log: Pick<Logger, "warning">;
  readonly #nowMs: () => number;
  #times = 0;
  #tellAtMs = 0;

  constructor(log: Pick<Logger, "warning">, nowMs: () => number = () => performance.now()) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** `times` is added to the fields: how often it came since it was told last. */
  tell(message: string, fields: LogFields): void {
    this.#times += 1;
    const nowMs = this.#nowMs();
    if (nowMs < this.#tellAtMs) return;
    this.#log.warning(message, { ...fields, times: this.#times });
    this.#times = 0;
    this.#tellAtMs = nowMs + tellEveryMs;
  }
}

/** The same for each of a few reasons, so that a frequent one hides no other. */
export class SeldomWarnings {
  readonly #log: Pick<Logger, "warning">;
  readonly #byReason = new Map<string, SeldomWarning>();

  constructor(log: Pick<Logger, "warning">) {
    this.#log = log;
  }

  /** `reason` is one of a few: each is kept. */
  tell(reason: string, message: string, fields: LogFields): void {
    const warning = this.#byReason.get(reason) ?? new SeldomWarning(this.#log);
    this.#byReason.set(reason, warning);
    warning.tell(message, fields);
  }
}
