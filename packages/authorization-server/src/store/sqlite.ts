// The embedded database: node:sqlite with a write-ahead log that is flushed at each commit. Transactions that arrive in
// the same turn of the event loop share one commit, and so one flush; each has its own savepoint and is answered only
// after that flush.
import { chmodSync, closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { StatementSync } from "node:sqlite";
import type { Database, Reader, Row, SqlValue, Transaction } from "./database.ts";
import { DatabaseUnavailable } from "./database.ts";

export interface SqliteOptions {
  readonly path: string;
  /** Milliseconds; only tests pass anything but the machine's clock. */
  readonly nowMs?: () => number;
  /** How long a writer waits for another process before it gives up. */
  readonly busyTimeoutMs?: number;
}

interface Waiting {
  readonly work: (transaction: Transaction) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = { readonly value: unknown } | { readonly error: unknown };

const maxBatch = 64;
const busyRetryMs = 5;
const setUpTimeoutMs = 5000;
/** Of 4 KiB. So many stay for the next rows; so many go at once, within some milliseconds. */
export const keptFreePages = 256;
const compactPages = 1000;

export function openSqlite(options: SqliteOptions): Database {
  // SQLite would make the file with the process's umask; what lies in it is for its owner only.
  closeSync(openSync(options.path, "a", 0o600));
  chmodSync(options.path, 0o600);
  // Two processes may make the file at the same moment; later `#begin` waits, without stopping the event loop.
  const writer = new DatabaseSync(options.path, { timeout: setUpTimeoutMs });
  // Of a new file alone: what is deleted later can be cut off its end (`compact`).
  writer.exec("PRAGMA auto_vacuum = INCREMENTAL");
  const mode = pragma(writer, "journal_mode = WAL");
  if (mode !== "wal") throw new Error(`SQLite at ${options.path} is in journal mode ${mode}, needed is wal`);
  // A checkpoint stops the loop for a moment: better one in 6 MB of log, which is what it takes of the disk, than one
  // in SQLite's 4.
  writer.exec(
    "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA wal_autocheckpoint = 1500",
  );
  const synchronous = pragma(writer, "synchronous");
  if (synchronous !== "2")
    throw new Error(`SQLite at ${options.path} has synchronous=${synchronous}, needed is FULL (2)`);
  writer.exec("PRAGMA busy_timeout = 0");
  const reader = new DatabaseSync(options.path, { readOnly: true, timeout: 1000 });
  return new SqliteDatabase(writer, reader, options.nowMs ?? Date.now, options.busyTimeoutMs ?? 5000);
}

function pragma(database: DatabaseSync, text: string): string {
  const row = database.prepare(`PRAGMA ${text}`).get() as Readonly<Record<string, string | number>> | undefined;
  return String(Object.values(row ?? {})[0]);
}

class SqliteReader implements Reader {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #now: () => number;

  constructor(database: DatabaseSync, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  get nowMs(): number {
    return this.#now();
  }

  all<R = Row>(sql: string, parameters: readonly SqlValue[] = []): Promise<readonly R[]> {
    return attempt(() => this.statement(sql).all(...parameters) as R[]);
  }

  get<R = Row>(sql: string, parameters: readonly SqlValue[] = []): Promise<R | undefined> {
    return attempt(() => this.statement(sql).get(...parameters) as R | undefined);
  }

  protected statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

class SqliteWriter extends SqliteReader implements Transaction {
  run(sql: string, parameters: readonly SqlValue[] = []): Promise<number> {
    return attempt(() => Number(this.statement(sql).run(...parameters).changes));
  }

  // BEGIN IMMEDIATE holds the only write lock there is.
  lock(): Promise<void> {
    return Promise.resolve();
  }
}

function attempt<T>(work: () => T): Promise<T> {
  try {
    return Promise.resolve(work());
  } catch (error) {
    return Promise.reject(unavailable(error));
  }
}

class SqliteDatabase implements Database {
  readonly dialect = "sqlite";
  readonly #writerDatabase: DatabaseSync;
  readonly #readerDatabase: DatabaseSync;
  readonly #writer: SqliteWriter;
  readonly #reader: SqliteReader;
  readonly #busyTimeoutMs: number;
  readonly #queue: Waiting[] = [];
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(writer: DatabaseSync, reader: DatabaseSync, nowMs: () => number, busyTimeoutMs: number) {
    this.#writerDatabase = writer;
    this.#readerDatabase = reader;
    this.#writer = new SqliteWriter(writer, nowMs);
    this.#reader = new SqliteReader(reader, nowMs);
    this.#busyTimeoutMs = busyTimeoutMs;
  }

  transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, resolve: resolve as (value: unknown) => void, reject });
      // The next turn, not this one: what the poll phase has read by then joins the same commit.
      this.#running ??= new Promise<void>((done) => {
        setImmediate(() => void this.#drain().finally(done));
      });
    });
  }

  read<T>(work: (reader: Reader) => Promise<T>): Promise<T> {
    return work(this.#reader);
  }

  script(_transaction: Transaction, sql: string): Promise<void> {
    return attempt(() => this.#writerDatabase.exec(sql));
  }

  async compact(): Promise<void> {
    await this.transaction(async () => {
      const free = Number(pragma(this.#writerDatabase, "freelist_count"));
      if (free > keptFreePages) this.#writerDatabase.exec(`PRAGMA incremental_vacuum(${compactPages})`);
    });
    await this.#running;
    // What is in the log goes into the file, and the log is empty then.
    if (!this.#closed) this.#writerDatabase.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#running;
    this.#readerDatabase.close();
    this.#writerDatabase.close();
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) await this.#commitTogether(this.#queue.splice(0, maxBatch));
    this.#running = undefined;
  }

  async #commitTogether(batch: readonly Waiting[]): Promise<void> {
    const outcomes: Outcome[] = [];
    try {
      await this.#begin();
      for (const waiting of batch) outcomes.push(await this.#inSavepoint(waiting, batch.length > 1));
      this.#writerDatabase.exec("COMMIT");
    } catch (error) {
      if (this.#writerDatabase.isOpen && this.#writerDatabase.isTransaction) this.#writerDatabase.exec("ROLLBACK");
      for (const waiting of batch) waiting.reject(unavailable(error));
      return;
    }
    for (const [index, outcome] of outcomes.entries()) {
      const waiting = batch[index]!;
      if ("error" in outcome) waiting.reject(outcome.error);
      else waiting.resolve(outcome.value);
    }
  }

  /** SQLite's own busy handler would stop the whole event loop while it waits; this one lets other work go on. */
  async #begin(): Promise<void> {
    const deadline = performance.now() + this.#busyTimeoutMs;
    for (;;) {
      try {
        this.#writerDatabase.exec("BEGIN IMMEDIATE");
        return;
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, busyRetryMs));
    }
  }

  async #inSavepoint(waiting: Waiting, shared: boolean): Promise<Outcome> {
    if (shared) this.#writerDatabase.exec("SAVEPOINT one");
    try {
      const value = await waiting.work(this.#writer);
      if (shared) this.#writerDatabase.exec("RELEASE one");
      return { value };
    } catch (error) {
      if (shared) this.#writerDatabase.exec("ROLLBACK TO one; RELEASE one");
      else this.#writerDatabase.exec("ROLLBACK; BEGIN");
      return { error };
    }
  }
}

function isBusy(error: unknown): boolean {
  return (error as { errcode?: number }).errcode === 5;
}

// SQLite result codes that speak of the file or the machine, not of the statement: BUSY, LOCKED, READONLY, IOERR,
// CORRUPT, FULL, CANTOPEN, NOTADB (https://sqlite.org/rescode.html).
const environmentCodes = new Set([5, 6, 8, 10, 11, 13, 14, 26]);

function unavailable(error: unknown): unknown {
  const code = (error as { errcode?: number }).errcode;
  if (code !== undefined && environmentCodes.has(code & 0xff)) {
    return new DatabaseUnavailable(`SQLite: ${(error as Error).message}`, { cause: error });
  }
  if ((error as Error).message === "database is not open") return new DatabaseUnavailable("SQLite: closed");
  return error;
}
