// The one seam between the authorization server and its databases: short asynchronous transactions of plain SQL in the
// dialect that SQLite and PostgreSQL share. Statements are constants with `?` for parameters, prepared once by each
// database; a query builder would cost more on the flow's hot path than the statements themselves.

export type SqlValue = string | number | null;
export type Row = Readonly<Record<string, SqlValue>>;

export interface Reader {
  /** The database's clock, in milliseconds: it alone decides what has expired. */
  readonly nowMs: number;
  all<R = Row>(sql: string, parameters?: readonly SqlValue[]): Promise<readonly R[]>;
  get<R = Row>(sql: string, parameters?: readonly SqlValue[]): Promise<R | undefined>;
}

export interface Transaction extends Reader {
  /** Runs a statement and says how many rows it changed. */
  run(sql: string, parameters?: readonly SqlValue[]): Promise<number>;
  /** Waits until no other transaction of any process holds the same name; held until the end of this one. */
  lock(name: string): Promise<void>;
}

export interface Database {
  readonly dialect: "sqlite" | "postgresql";
  /**
   * Runs `work` and commits before the promise settles: what it returned is durable. A throw rolls back. `work` must
   * await nothing but its transaction: others wait for it.
   */
  transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /** Reads outside of a transaction; each statement sees what is committed. */
  read<T>(work: (reader: Reader) => Promise<T>): Promise<T>;
  /** Schema statements, for migrations only. */
  script(transaction: Transaction, sql: string): Promise<void>;
  /** Gives the space of deleted rows back to the disk, where the database does not do so by itself. */
  compact(): Promise<void>;
  close(): Promise<void>;
}

/** The database cannot be reached or cannot write now. Endpoints answer 503; nothing needs a restart. */
export class DatabaseUnavailable extends Error {
  override readonly name = "DatabaseUnavailable";
}
