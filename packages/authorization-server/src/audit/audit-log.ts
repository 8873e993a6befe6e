// The audit log: why something was refused, and what was allowed, with the error id that the requester saw. An event is
// a log line at once and a row soon after: rows are written in the background, so that a refusal costs its requester no
// commit and an unreachable database cannot stop refusals. Refusals that are repeated are one row with a count. No
// event ever holds a secret.
import type { Logger } from "@tulle/telemetry";
import type { Counter } from "@tulle/telemetry";
import { newErrorId, newOrderedId } from "../crypto/secrets.ts";
import type { Refusal } from "../protocol/refusal.ts";
import { RepeatedRefusals } from "./repeated-refusals.ts";
import type { Database, Reader, Transaction } from "../store/database.ts";

export interface AuditEvent {
  readonly event: string;
  readonly clientId?: string | undefined;
  readonly userId?: string | undefined;
  readonly address?: string | undefined;
  readonly errorId?: string | undefined;
  readonly error?: string | undefined;
  readonly description?: string | undefined;
  readonly reason?: string | undefined;
}

export interface AuditOptions {
  readonly database: Database;
  readonly log: Logger;
  readonly lifetimeMs: number;
  readonly dropped: Counter;
  readonly nowMs?: (() => number) | undefined;
  readonly maxQueued?: number;
}

const textLimit = 500;
const administrationLifetimeMs = 365 * 86_400_000;
/** How often the counts of repeated refusals are written. */
const countIntervalMs = 5000;

/** A row to be. */
interface Entry {
  readonly id: string;
  readonly event: AuditEvent;
}

export class AuditLog {
  readonly #options: AuditOptions;
  readonly #nowMs: () => number;
  readonly #repeated: RepeatedRefusals;
  #queue: Entry[] = [];
  #writing: Promise<void> | undefined;
  #counting: NodeJS.Timeout | undefined;

  constructor(options: AuditOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
    this.#repeated = new RepeatedRefusals((event) =>
      options.log.warning(`${event.event}: repeated`, { error_id: event.errorId, address: event.address }),
    );
  }

  /** Answers the error id to give to the requester: of a refusal that is repeated, that of the first one. */
  record(event: AuditEvent): string | undefined {
    const nowMs = this.#nowMs();
    const id = newOrderedId(nowMs);
    const first = event.error === undefined ? undefined : this.#repeated.fold(event, id, nowMs);
    if (first !== undefined) {
      this.#options.log.debug(event.event, { error_id: first, error: event.error, address: event.address });
      this.#countSoon();
      return first;
    }
    this.#tell(event);
    if (this.#queue.length >= (this.#options.maxQueued ?? 10_000)) {
      this.#options.dropped.increment();
      return event.errorId;
    }
    this.#queue.push({ id, event });
    this.#writing ??= this.#writeQueued().finally(() => (this.#writing = undefined));
    return event.errorId;
  }

  /** Records a refusal under an error id, which goes into the answer too. */
  refusal(event: string, refusal: Refusal, who: Pick<AuditEvent, "clientId" | "userId" | "address">): string {
    const errorId = newErrorId();
    const { error, description, reason } = refusal;
    return this.record({ event, errorId, error, description, reason, ...who }) ?? errorId;
  }

  /** Waits until everything recorded so far is stored or dropped. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    clearTimeout(this.#counting);
    this.#counting = undefined;
    await this.#writeCounts();
  }

  #tell(event: AuditEvent): void {
    this.#options.log[event.error === undefined ? "info" : "warning"](event.event, {
      error_id: event.errorId,
      error: event.error,
      description: event.description,
      reason: event.reason,
      client_id: event.clientId,
      user_id: event.userId,
      address: event.address,
    });
  }

  #countSoon(): void {
    this.#counting ??= setTimeout(() => {
      this.#counting = undefined;
      void this.#writeCounts();
    }, countIntervalMs).unref();
  }

  async #writeQueued(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, 200);
      await this.#store(batch.length, async (transaction) => {
        for (const { id, event } of batch) await insertEvent(transaction, id, event, this.#options.lifetimeMs);
      });
    }
  }

  async #writeCounts(): Promise<void> {
    const counts = this.#repeated.takeCounts();
    if (counts.length === 0) return;
    await this.#store(counts.length, async (transaction) => {
      for (const { id, count, lastAtMs } of counts) {
        await transaction.run("UPDATE audit_events SET occurrences = ?, last_at = ? WHERE id = ?", [
          count,
          lastAtMs,
          id,
        ]);
      }
    });
  }

  async #store(count: number, work: (transaction: Transaction) => Promise<void>): Promise<void> {
    try {
      await this.#options.database.transaction(work);
    } catch (error) {
      this.#options.dropped.add(count);
      this.#options.log.error("audit events were not stored", { count, error: String(error) });
    }
  }
}

/** What an administrator did, in the transaction that does it. */
export async function recordAdministration(transaction: Transaction, event: AuditEvent): Promise<void> {
  await insertEvent(transaction, newOrderedId(transaction.nowMs), event, administrationLifetimeMs);
}

async function insertEvent(transaction: Transaction, id: string, event: AuditEvent, lifetimeMs: number): Promise<void> {
  const limited = (text: string | undefined): string | null => text?.slice(0, textLimit) ?? null;
  await transaction.run(
    `INSERT INTO audit_events (id, at, event, error_id, error, description, reason, client_id, user_id, address,
      expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      id,
      transaction.nowMs,
      event.event,
      limited(event.errorId),
      limited(event.error),
      limited(event.description),
      limited(event.reason),
      limited(event.clientId),
      limited(event.userId),
      limited(event.address),
      transaction.nowMs + lifetimeMs,
    ],
  );
}

export interface StoredAuditEvent extends AuditEvent {
  readonly atMs: number;
  /** How often it came within a few minutes, and when last. */
  readonly count: number;
  readonly lastAtMs: number;
}

/** Newest first; one error id, or everything. */
export async function listAuditEvents(
  reader: Reader,
  filter: { readonly errorId?: string; readonly limit: number },
): Promise<readonly StoredAuditEvent[]> {
  const rows = await reader.all<
    Record<string, string | null> & { at: number; occurrences: number; last_at: number | null }
  >("SELECT * FROM audit_events WHERE (error_id = ? OR ? = '') ORDER BY at DESC LIMIT ?", [
    filter.errorId ?? "",
    filter.errorId ?? "",
    filter.limit,
  ]);
  return rows.map((row) => ({
    atMs: row.at,
    count: row.occurrences,
    lastAtMs: row.last_at ?? row.at,
    event: row["event"] ?? "",
    errorId: row["error_id"] ?? undefined,
    error: row["error"] ?? undefined,
    description: row["description"] ?? undefined,
    reason: row["reason"] ?? undefined,
    clientId: row["client_id"] ?? undefined,
    userId: row["user_id"] ?? undefined,
    address: row["address"] ?? undefined,
  }));
}
