// A file of the machine's settings, followed while a program runs: whoever edits it restarts no program.
import { readFileSync, type Stats, statSync } from "node:fs";
import type { Clock } from "@tulle/timing";

export interface FollowedFileOptions<T> {
  readonly path: string;
  readonly clock: Clock;
  /** What is read of its text. */
  readonly read: (text: string) => T;
  /** What holds before there was ever a file. */
  readonly initial: T;
  readonly maxBytes: number;
  /** Called with each content that is taken. */
  readonly onRead?: (content: T) => void;
  /** Called once for each state in which it cannot be read. */
  readonly onFailure?: (reason: string) => void;
}

/** Who asks within it may still be told what was there before. */
const lookAgainMs = 1000;

export class FollowedFile<T> {
  readonly #options: FollowedFileOptions<T>;
  #content: T;
  #lookedAtMs: number | undefined;
  /** Which file, and in which state, was read last. */
  #seen: string | undefined;

  constructor(options: FollowedFileOptions<T>) {
    this.#options = options;
    this.#content = options.initial;
  }

  /** As it is now; a file that is gone or cannot be read leaves what it said. */
  content(): T {
    const nowMs = this.#options.clock.nowMs();
    if (this.#lookedAtMs === undefined || nowMs - this.#lookedAtMs >= lookAgainMs) {
      this.#lookedAtMs = nowMs;
      this.#look();
    }
    return this.#content;
  }

  #look(): void {
    const { path, read, maxBytes, onRead, onFailure } = this.#options;
    let state = "";
    try {
      const stats = statSync(path);
      state = stateOf(stats);
      if (state === this.#seen) return;
      this.#content = read(textOf(path, stats, maxBytes));
      onRead?.(this.#content);
    } catch (error) {
      const { code = "", message } = error as NodeJS.ErrnoException;
      state ||= code;
      if (state !== this.#seen) onFailure?.(message);
    }
    this.#seen = state;
  }
}

function stateOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join(" ");
}

/** Of no pipe or device: reading one may never end. */
function textOf(path: string, stats: Stats, maxBytes: number): string {
  if (!stats.isFile()) throw new Error("it is no file");
  if (stats.size > maxBytes) throw new Error(`it is longer than ${maxBytes} bytes`);
  return readFileSync(path, "utf8");
}
