// One log file a process: appended to by the process itself, bounded by the supervisor.
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { lineWriter } from "@tulle/telemetry";

/** Above this a log is cut to its last `keptLogBytes`; the part before goes to `<name>.log.1`. */
export const maxLogBytes = 64 * 1024 * 1024;

export class LogFile {
  readonly path: string;
  readonly descriptor: number;
  readonly #writeLine: (line: string) => void;
  #isClosed = false;

  constructor(file: string) {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    this.path = file;
    // Append mode makes each write go to the end as it then is, also after the file was cut.
    this.descriptor = openSync(file, "a+", 0o600);
    this.#writeLine = lineWriter(this.descriptor);
  }

  /** For the supervisor's own lines. */
  write(text: string): void {
    if (!this.#isClosed) this.#writeLine(text);
  }

  /** Moves the content aside when the file has grown too long. Lines written in the moment between are lost. */
  bound(maxBytes = maxLogBytes): void {
    const { size } = fstatSync(this.descriptor);
    if (size <= maxBytes) return;
    const tail = Buffer.alloc(Math.min(size, maxBytes));
    readSync(this.descriptor, tail, 0, tail.length, size - tail.length);
    const aside = `${this.path}.1`;
    try {
      writeFileSync(`${aside}.new`, tail, { mode: 0o600 });
      renameSync(`${aside}.new`, aside);
    } catch {
      // The disk is full: what would be kept is in the way of what comes.
      rmSync(`${aside}.new`, { force: true });
    }
    ftruncateSync(this.descriptor, 0);
  }

  /** The line that most likely says why a program ended, for a message; at most 300 characters. */
  lastWords(): string {
    const { size } = fstatSync(this.descriptor);
    const tail = Buffer.alloc(Math.min(size, 4096));
    readSync(this.descriptor, tail, 0, tail.length, size - tail.length);
    const lines = tail.toString("utf8").trim().split("\n");
    // What is left of a line is not what was said.
    if (size > tail.length && lines.length > 1) lines.shift();
    // Below an uncaught error Node prints the stack, properties of the error and its version.
    const telling = lines.findLast((line) => /^\S/.test(line) && !/^(Node\.js v|[{}[\]])/.test(line));
    return (telling ?? lines.at(-1) ?? "").slice(0, 300);
  }

  close(): void {
    this.#isClosed = true;
    closeSync(this.descriptor);
  }
}
