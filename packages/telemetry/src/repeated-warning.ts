// A warning in words of somebody else, such as why a stream has ended: the same words are told once a minute, other
// words at most once a second.
import type { LogFields, Logger } from "./log.ts";

const sameEveryMs = 60_000;
const otherEveryMs = 1000;
/** Other words than those push the oldest out. */
const maxKnownWords = 16;

interface Known {
  readonly toldAtMs: number;
  times: number;
}

export class RepeatedWarning {
  readonly #log: Pick<Logger, "warning">;
  readonly #nowMs: () => number;
  /** By words, the ones told longest ago first. */
  readonly #known = new Map<string, Known>();
  #toldAtMs = -Infinity;

  constructor(log: Pick<Logger, "warning">, nowMs: () => number = () => performance.now()) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /**
   * Whether it was told; then `times` is added to the fields where it has come more than once since it was told last.
   */
  tell(message: string, fields: LogFields): boolean {
    const words = `${message} ${JSON.stringify(fields)}`;
    const nowMs = this.#nowMs();
    const known = this.#known.get(words);
    if (known !== undefined) known.times += 1;
    if (nowMs < (known?.toldAtMs ?? -Infinity) + sameEveryMs || nowMs < this.#toldAtMs + otherEveryMs) return false;
    this.#log.warning(message, known === undefined ? fields : { ...fields, times: known.times });
    this.#known.delete(words);
    this.#known.set(words, { toldAtMs: nowMs, times: 0 });
    if (this.#known.size > maxKnownWords) this.#known.delete(this.#known.keys().next().value!);
    this.#toldAtMs = nowMs;
    return true;
  }
}
