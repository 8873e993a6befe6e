// A warning about something that others can make happen as often as they like: told at most once a second, with how often it was.
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
