// The sink of access logs: lines of one event-loop stretch leave in one write, the buffer is bounded, and a disk that
// refuses is said once while traffic goes on.
import fs from "node:fs";
import { type Counter, type Logger, type MetricRegistry, Trouble } from "@tulle/telemetry";
import { textOfRuns } from "../http/header-value.ts";
import { type FileStats, makeFileStats } from "./file-stats.ts";

/** Lines kept while the file system is slow; what comes on top is dropped and counted. */
const maxBufferedBytes = 1 << 20;
/** A buffer that holds so much is written at once (Envoy: 64 KiB). */
const flushBytes = 64 * 1024;
/** Room for a few lines behind that. */
const bufferBytes = 2 * flushBytes;
/** In UTF-8, of one character of JavaScript's. */
const maxCharacterBytes = 3;
/** At the end, for a disk or a reader that is slow; what is not written by then is lost, and counted. */
const closeTimeoutMs = 1000;

/** A pipe that nobody reads is refused, rather than holding the process up; so is a write to one that is full. */
const openFlags = fs.constants.O_WRONLY | fs.constants.O_APPEND | fs.constants.O_CREAT | fs.constants.O_NONBLOCK;

const lineFeed = Buffer.from("\n");

/** Shorter than Envoy's 10 s, so that a person who tails the log sees requests as they come. */
const flushIntervalMs = 200;

export interface AccessLogFileOptions {
  readonly path: string;
  readonly log: Logger;
  readonly metrics: MetricRegistry;
}

/**
 * Lines become bytes one by one, while they are in the processor's caches: joined as text and turned into bytes
 * together, they cost 1 µs more of 37 a request.
 *
 * States: idle (empty buffer, no timer) → waiting (lines buffered, timer set) → writing (one write in flight, lines of
 * meanwhile buffered) → idle or waiting. `/dev/stdout` and `/dev/stderr` are the process's own descriptors. Nobody
 * waits for a write: a disk, or a pipe's reader, may hang.
 */
export class AccessLogFile {
  readonly path: string;
  readonly #trouble: Trouble;
  readonly #dropped: Counter;
  readonly #stats: FileStats;
  readonly #isOwned: boolean;
  #descriptor: number | undefined;
  /**
   * Descriptors that are done with, but for the write in flight: a number that is free could be a client's socket next.
   */
  readonly #leaving: number[] = [];
  #buffer: Buffer = Buffer.allocUnsafeSlow(bufferBytes);
  #usedBytes = 0;
  /** The one that was written last. */
  #spare: Buffer | undefined = undefined;
  #isWriting = false;
  #writingBytes = 0;
  /** A write was cut short within a line: what follows begins another. */
  #isWithinLine = false;
  /** Told at the end, when a write has ended. */
  #onWriteEnd: (() => void) | undefined = undefined;
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
    this.#stats = makeFileStats(options.metrics);
    this.#isOwned = options.path !== "/dev/stdout" && options.path !== "/dev/stderr";
    this.#descriptor = this.#open();
  }

  /**
   * Takes a whole line, line feed included; what in it are UTF-8 bytes of a head is written as they are. As many bytes
   * as characters are ASCII: to look through each line before took 0.2 µs of 22 a request.
   */
  write(line: string): void {
    if (this.#usedBytes + line.length > maxBufferedBytes) {
      this.#dropped.increment();
      this.#fail("the buffer is full");
      return;
    }
    const neededBytes = this.#usedBytes + line.length * maxCharacterBytes;
    if (neededBytes > this.#buffer.length) this.#grow(neededBytes);
    let bytes = this.#buffer.write(line, this.#usedBytes);
    if (bytes !== line.length) bytes = this.#buffer.write(textOfRuns(line), this.#usedBytes);
    this.#usedBytes += bytes;
    this.#stats.buffered.increment();
    this.#stats.waitingBytes.add(bytes);
    if (this.#isWriting) return;
    if (this.#usedBytes >= flushBytes) this.#flush();
    else this.#armTimer();
  }

  #armTimer(): void {
    this.#timer ??= setTimeout(() => {
      this.#stats.flushedByTimer.increment();
      this.#flush();
    }, flushIntervalMs).unref();
  }

  #grow(neededBytes: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(neededBytes, 2 * this.#buffer.length));
    this.#buffer.copy(larger, 0, 0, this.#usedBytes);
    this.#buffer = larger;
  }

  /** Opens the path anew, for log rotation (`/reopen_logs`). */
  reopen(): void {
    if (!this.#isOwned) return;
    try {
      const next = this.#open();
      // What came before is the old file's, unless that is being written to: then it is the first of the new one.
      if (!this.#isWriting) this.#flush();
      this.#closeDescriptor();
      this.#descriptor = next;
    } catch (error) {
      this.#stats.reopenFailed.increment();
      this.#fail(error instanceof Error ? error.message : String(error));
    }
  }

  /** Writes what there is, as far as that goes within a second. */
  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, closeTimeoutMs);
    this.#onWriteEnd = () => {
      this.#flush();
      if (!this.#isWriting) resolve();
    };
    if (!this.#isWriting) this.#onWriteEnd();
    await promise;
    clearTimeout(timer);
    this.#onWriteEnd = undefined;
    this.#dropped.add(linesOf(this.#buffer.subarray(0, this.#usedBytes)));
    this.#stats.waitingBytes.add(-this.#usedBytes);
    this.#usedBytes = 0;
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
    return fs.openSync(this.path, openFlags, 0o644);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#usedBytes === 0 || this.#descriptor === undefined) return;
    const full = this.#buffer;
    const bytes = full.subarray(0, this.#usedBytes);
    this.#buffer = this.#spare ?? Buffer.allocUnsafeSlow(bufferBytes);
    this.#spare = undefined;
    this.#writingBytes = this.#usedBytes;
    this.#usedBytes = 0;
    this.#isWriting = true;
    this.#write(this.#descriptor, this.#isWithinLine ? Buffer.concat([lineFeed, bytes]) : bytes, 0, full);
  }

  /** What is behind `done`. */
  #write(descriptor: number, bytes: Buffer, done: number, buffer: Buffer): void {
    fs.write(descriptor, bytes, done, (error, written) => {
      const doneNow = error === null ? done + written : done;
      if (doneNow > 0) this.#isWithinLine = bytes[doneNow - 1] !== lineFeed[0];
      if (doneNow < bytes.length && error === null) return this.#write(descriptor, bytes, doneNow, buffer);
      if (error?.code === "EAGAIN" && descriptor === this.#descriptor) {
        // The reader of a pipe is slow: what comes meanwhile is kept, up to the bound.
        setTimeout(() => this.#write(descriptor, bytes, done, buffer), flushIntervalMs).unref();
        return;
      }
      this.#endWrite(error, bytes.subarray(doneNow), buffer);
    });
  }

  #endWrite(error: NodeJS.ErrnoException | null, lost: Buffer, buffer: Buffer): void {
    this.#isWriting = false;
    this.#stats.waitingBytes.add(-this.#writingBytes);
    (error === null ? this.#stats.completed : this.#stats.failed).increment();
    // What has grown once is not kept.
    if (buffer.length === bufferBytes) this.#spare = buffer;
    for (const left of this.#leaving.splice(0)) fs.closeSync(left);
    if (error === null) {
      this.#trouble.end("the access log can be written again", { path: this.path });
    } else {
      this.#dropped.add(linesOf(lost));
      this.#fail(error.message);
    }
    if (this.#onWriteEnd !== undefined) this.#onWriteEnd();
    else if (this.#usedBytes > 0) this.#armTimer();
  }

  #fail(reason: string): void {
    this.#trouble.begin("access log lines are lost until it can be written again", { path: this.path, reason });
  }
}

function linesOf(bytes: Buffer): number {
  return bytes.toString("latin1").split("\n").length - 1;
}

/** One file a path, however many listeners write to it. */
export class AccessLogFiles {
  readonly #files = new Map<string, AccessLogFile>();
  readonly #log: Logger;
  readonly #metrics: MetricRegistry;

  constructor(log: Logger, metrics: MetricRegistry) {
    this.#log = log;
    this.#metrics = metrics;
    // They are there before any file is.
    makeFileStats(metrics);
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

  async closeAll(): Promise<void> {
    const files = [...this.#files.values()];
    this.#files.clear();
    await Promise.all(files.map((file) => file.close()));
  }
}
