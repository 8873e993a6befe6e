// PostgreSQL for installations of several processes. READ COMMITTED is enough: what must happen once is a conditional
// UPDATE, and what must not run twice at the same time takes an advisory lock.
import { createHash } from "node:crypto";
import { Pool, types as pgTypes } from "pg";
import type { PoolClient, QueryResult } from "pg";
import type { Database, Reader, Row, SqlValue, Transaction } from "./database.ts";
import { DatabaseUnavailable } from "./database.ts";

export interface PostgresqlOptions {
  readonly url: string;
  readonly maxConnections?: number;
  readonly connectTimeoutMs?: number;
  readonly statementTimeoutMs?: number;
  /** Called when an idle connection breaks; the pool replaces it. */
  readonly onConnectionLost?: (error: Error) => void;
  /** Milliseconds; only tests pass a clock, otherwise the database's own decides. */
  readonly nowMs?: () => number;
}

const numbered = new Map<string, string>();

/** `?` → `$1`, `$2`, …: statements are constants, so each is rewritten once. None holds a literal question mark. */
function withNumbers(sql: string): string {
  let text = numbered.get(sql);
  if (text === undefined) {
    let count = 0;
    text = sql.replace(/\?/g, () => `$${(count += 1)}`);
    numbered.set(sql, text);
  }
  return text;
}

// bigint columns hold milliseconds, which are exact as numbers.
const int8Oid = 20;
const types = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === int8Oid ? Number : pgTypes.getTypeParser(oid, format)) as typeof pgTypes.getTypeParser,
};

interface Queryable {
  query(config: { name?: string; text: string; values?: unknown[] }): Promise<QueryResult>;
}

export function openPostgresql(options: PostgresqlOptions): Database {
  const pool = new Pool({
    connectionString: options.url,
    max: options.maxConnections ?? 10,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 3000,
    statement_timeout: options.statementTimeoutMs ?? 5000,
    query_timeout: (options.statementTimeoutMs ?? 5000) + 1000,
    idle_in_transaction_session_timeout: 10_000,
    application_name: "tulle-authorization-server",
    types,
  });
  pool.on("error", (error) => options.onConnectionLost?.(error));
  return new PostgresqlDatabase(pool, options.nowMs);
}

class PostgresqlReader implements Reader {
  readonly nowMs: number;
  protected readonly queryable: Queryable;

  constructor(queryable: Queryable, nowMs: number) {
    this.queryable = queryable;
    this.nowMs = nowMs;
  }

  async all<R = Row>(sql: string, parameters: readonly SqlValue[] = []): Promise<readonly R[]> {
    return (await this.execute(sql, parameters)).rows as R[];
  }

  async get<R = Row>(sql: string, parameters: readonly SqlValue[] = []): Promise<R | undefined> {
    return (await this.execute(sql, parameters)).rows[0] as R | undefined;
  }

  protected execute(sql: string, parameters: readonly SqlValue[]): Promise<QueryResult> {
    return this.queryable.query({ name: statementName(sql), text: withNumbers(sql), values: [...parameters] });
  }
}

const names = new Map<string, string>();

/** A name makes the server keep the plan of the statement for the life of the connection. */
function statementName(sql: string): string {
  let name = names.get(sql);
  if (name === undefined) {
    name = createHash("sha256").update(sql).digest("hex").slice(0, 32);
    names.set(sql, name);
  }
  return name;
}

class PostgresqlTransaction extends PostgresqlReader implements Transaction {
  async run(sql: string, parameters: readonly SqlValue[] = []): Promise<number> {
    return (await this.execute(sql, parameters)).rowCount ?? 0;
  }

  async lock(name: string): Promise<void> {
    const key = createHash("sha256").update(`tulle:${name}`).digest().readInt32BE(0);
    await this.queryable.query({ text: "SELECT pg_advisory_xact_lock($1)", values: [key] });
  }

  async script(sql: string): Promise<void> {
    await this.queryable.query({ text: sql });
  }
}

class PostgresqlDatabase implements Database {
  readonly dialect = "postgresql";
  readonly #pool: Pool;
  readonly #nowMs: (() => number) | undefined;

  constructor(pool: Pool, nowMs: (() => number) | undefined) {
    this.#pool = pool;
    this.#nowMs = nowMs;
  }

  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.#withClient(async (client) => {
      // One round trip for both; a simple query with two statements answers with two results.
      const begun = (await client.query(`BEGIN; ${clockQuery}`)) as unknown as QueryResult[];
      try {
        const result = await work(new PostgresqlTransaction(client, this.#nowMs?.() ?? clockOf(begun[1]!)));
        await client.query("COMMIT");
        return result;
      } catch (error) {
        await client.query("ROLLBACK").catch(() => undefined);
        throw error;
      }
    });
  }

  async read<T>(work: (reader: Reader) => Promise<T>): Promise<T> {
    return this.#withClient(async (client) => {
      const nowMs = this.#nowMs?.() ?? clockOf(await client.query(clockQuery));
      return work(new PostgresqlReader(client, nowMs));
    });
  }

  async script(transaction: Transaction, sql: string): Promise<void> {
    await (transaction as PostgresqlTransaction).script(sql);
  }

  // Its own vacuum does.
  compact(): Promise<void> {
    return Promise.resolve();
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #withClient<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    let client: PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (error) {
      throw new DatabaseUnavailable(`PostgreSQL: ${messageOf(error)}`, { cause: error });
    }
    let broken = false;
    const onError = (): void => {
      broken = true;
    };
    client.on("error", onError);
    try {
      return await work(client);
    } catch (error) {
      if (!isConnectionError(error)) throw error;
      broken = true;
      throw new DatabaseUnavailable(`PostgreSQL: ${messageOf(error)}`, { cause: error });
    } finally {
      client.off("error", onError);
      client.release(broken);
    }
  }
}

const clockQuery = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now";

function clockOf(result: QueryResult): number {
  return Number((result.rows[0] as { now: number | string }).now);
}

function messageOf(error: unknown): string {
  const { message, code } = error as { message?: string; code?: string };
  return message === undefined || message === "" ? (code ?? "unknown error") : message;
}

/**
 * Classes 08 (connection), 53 (resources), 57P (operator intervention) and 25006 (read-only standby) of PostgreSQL's
 * error codes, Node's socket errors, and pg's own texts without a code.
 */
function isConnectionError(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string };
  if (code !== undefined) return /^(08|53|57P|25006|57014|ECONN|EPIPE|ENOTFOUND|ENOENT|ETIMEDOUT|EAI_)/.test(code);
  return /Connection terminated|timeout|Client has encountered a connection error|not queryable/i.test(message ?? "");
}
