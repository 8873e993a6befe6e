// The sink of access logs: lines of one event-loop stretch leave in one write, the buffer is bounded, and a disk that
// refuses is said once while traffic goes on.
import fs from "node:fs";
import { type Counter, type Logger, type MetricRegistry, Trouble } from "@tulle/telemetry";

/** Lines kept while the file system is slow; what comes on top is dropped and counted. */
const maxBufferedCharacters = 1 << 20;
/** A buffer of this size is written at once (Envoy: 64 KiB). */
const flushCharacters = 64 * 1024;
/** Shorter than Envoy's 10 s, so that a person who tails the log sees requests as they come. */
const flushIntervalMs = 200;

export interface AccessLogFileOptions {
  readonly path: string;
  readonly log: Logger;
  readonly metrics: MetricRegistry;
}

/**
 * States: idle (empty buffer, no timer) → waiting (lines buffered, timer set) → writing (one write in flight, lines of
 * meanwhile buffered) → idle or waiting. `/dev/stdout` and `/dev/stderr` are the process's own descriptors.
 */
export class AccessLogFile {
  readonly path: string;
  readonly #trouble: Trouble;
  readonly #dropped: Counter;
  readonly #isOwned: boolean;
  #descriptor: number | undefined;
  /** Descriptors that are done with, but for the write in flight: a number that is free could be a client's socket next. */
  readonly #leaving: number[] = [];
  #buffer = "";
  #isWriting = false;
  #timer: NodeJS.Timeout | undefined = undefined;

  /** @throws when the file cannot be opened for appending. */
  constructor(options: AccessLogFileOptions) {
    this.path = options.path;
    this.#trouble = new Trouble(options.log);
    this.#dropped = options.metrics.counter({
      name: "envoy_access_log_file_write_dropped",
      help: "Access log lines lost because the file could not take them.",
      statName: "access_log_file.write_dropped",
    });
    this.#isOwned = options.path !== "/dev/stdout" && options.path !== "/dev/stderr";
    this.#descriptor = this.#open();
  }

  /** Takes a whole line, line feed included. */
  write(line: string): void {
    if (this.#buffer.length + line.length > maxBufferedCharacters) {
      this.#dropped.increment();
      this.#fail("the buffer is full");
      return;
    }
    this.#buffer += line;
    if (this.#isWriting) return;
    if (this.#buffer.length >= flushCharacters) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), flushIntervalMs).unref();
  }

  /** Opens the path anew, for log rotation (`/reopen_logs`). */
  reopen(): void {
    if (!this.#isOwned) return;
    this.flushSync();
    try {
      const next = this.#open();
      this.#closeDescriptor();
      this.#descriptor = next;
    } catch (error) {
      this.#fail(error instanceof Error ? error.message : String(error));
    }
  }

  /** Writes what is buffered before returning; for the end of the process. */
  flushSync(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#buffer === "" || this.#descriptor === undefined) return;
    const text = this.#buffer;
    this.#buffer = "";
    try {
      fs.writeSync(this.#descriptor, text);
    } catch (error) {
      this.#dropped.add(linesOf(text));
      this.#fail(error instanceof Error ? error.message : String(error));
    }
  }

  close(): void {
    this.flushSync();
    if (this.#isOwned) this.#closeDescriptor();
    this.#descriptor = undefined;
  }

  #closeDescriptor(): void {
    if (this.#descriptor === undefined) return;
    if (this.#isWriting) this.#leaving.push(this.#descriptor);
    else fs.closeSync(this.#descriptor);
  }

  #open(): number {
    if (this.path === "/dev/stdout") return 1;
    if (this.path === "/dev/stderr") return 2;
    return fs.openSync(this.path, "a", 0o644);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#buffer === "" || this.#descriptor === undefined) return;
    const bytes = Buffer.from(this.#buffer, "utf8");
    this.#buffer = "";
    this.#isWriting = true;
    this.#writeAll(this.#descriptor, bytes);
  }

  #writeAll(descriptor: number, bytes: Buffer): void {
    fs.write(descriptor, bytes, (error, written) => {
      if (error === null && written < bytes.length) {
        this.#writeAll(descriptor, bytes.subarray(written));
        return;
      }
      this.#isWriting = false;
      for (const left of this.#leaving.splice(0)) fs.closeSync(left);
      if (error === null) {
        this.#trouble.end("the access log can be written again", { path: this.path });
      } else {
        this.#dropped.add(linesOf(bytes.toString("latin1")));
        this.#fail(error.message);
      }
      if (this.#buffer !== "") this.#timer ??= setTimeout(() => this.#flush(), flushIntervalMs).unref();
    });
  }

  #fail(reason: string): void {
    this.#trouble.begin("access log lines are lost until it can be written again", { path: this.path, reason });
  }
}

function linesOf(text: string): number {
  return text.split("\n").length - 1;
}

/** One file a path, however many listeners write to it. */
export class AccessLogFiles {
  readonly #files = new Map<string, AccessLogFile>();
  readonly #log: Logger;
  readonly #metrics: MetricRegistry;

  constructor(log: Logger, metrics: MetricRegistry) {
    this.#log = log;
    this.#metrics = metrics;
  }

  /** @throws when the file cannot be opened. */
  open(path: string): AccessLogFile {
    let file = this.#files.get(path);
    if (file === undefined) {
      file = new AccessLogFile({ path, log: this.#log, metrics: this.#metrics });
      this.#files.set(path, file);
    }
    return file;
  }

  reopenAll(): void {
    for (const file of this.#files.values()) file.reopen();
  }

  flushAllSync(): void {
    for (const file of this.#files.values()) file.flushSync();
  }

  closeAll(): void {
    for (const file of this.#files.values()) file.close();
    this.#files.clear();
  }
}
