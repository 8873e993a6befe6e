// The audit log: why something was refused, and what was allowed, with the error id that the requester saw. An event is
// a log line at once and a row soon after: rows are written in the background, so that a refusal costs its requester no
// commit and an unreachable database cannot stop refusals. No event ever holds a secret.
import type { Logger } from "@tulle/telemetry";
import type { Counter } from "@tulle/telemetry";
import { newErrorId, newOrderedId } from "./crypto/secrets.ts";
import type { Refusal } from "./protocol/refusal.ts";
import type { Database, Reader, Transaction } from "./store/database.ts";

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
  readonly maxQueued?: number;
}

const textLimit = 500;
const administrationLifetimeMs = 365 * 86_400_000;

export class AuditLog {
  readonly #options: AuditOptions;
  #queue: AuditEvent[] = [];
  #writing: Promise<void> | undefined;

  constructor(options: AuditOptions) {
    this.#options = options;
  }

  record(event: AuditEvent): void {
    this.#options.log[event.error === undefined ? "info" : "warning"](event.event, {
      error_id: event.errorId,
      error: event.error,
      description: event.description,
      reason: event.reason,
      client_id: event.clientId,
      user_id: event.userId,
      address: event.address,
    });
    if (this.#queue.length >= (this.#options.maxQueued ?? 10_000)) {
      this.#options.dropped.increment();
      return;
    }
    this.#queue.push(event);
    this.#writing ??= this.#writeQueued().finally(() => (this.#writing = undefined));
  }

  /** Records a refusal under a new error id, which goes into the answer too. */
  refusal(event: string, refusal: Refusal, who: Pick<AuditEvent, "clientId" | "userId" | "address">): string {
    const errorId = newErrorId();
    this.record({
      event,
      errorId,
      error: refusal.error,
      description: refusal.description,
      reason: refusal.reason,
      ...who,
    });
    return errorId;
  }

  /** Waits until everything recorded so far is stored or dropped. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  async #writeQueued(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, 200);
      try {
        await this.#options.database.transaction(async (transaction) => {
          for (const event of batch) await insertEvent(transaction, event, this.#options.lifetimeMs);
        });
      } catch (error) {
        this.#options.dropped.add(batch.length);
        this.#options.log.error("audit events were not stored", { count: batch.length, error: String(error) });
      }
    }
  }
}

/** What an administrator did, in the transaction that does it. */
export async function recordAdministration(transaction: Transaction, event: AuditEvent): Promise<void> {
  await insertEvent(transaction, event, administrationLifetimeMs);
}

async function insertEvent(transaction: Transaction, event: AuditEvent, lifetimeMs: number): Promise<void> {
  const limited = (text: string | undefined): string | null => text?.slice(0, textLimit) ?? null;
  await transaction.run(
    `INSERT INTO audit_events (id, at, event, error_id, error, description, reason, client_id, user_id, address,
      expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      newOrderedId(transaction.nowMs),
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
}

/** Newest first; one error id, or everything. */
export async function listAuditEvents(
  reader: Reader,
  filter: { readonly errorId?: string; readonly limit: number },
): Promise<readonly StoredAuditEvent[]> {
  const rows = await reader.all<Record<string, string | null> & { at: number }>(
    "SELECT * FROM audit_events WHERE (error_id = ? OR ? = '') ORDER BY at DESC LIMIT ?",
    [filter.errorId ?? "", filter.errorId ?? "", filter.limit],
  );
  return rows.map((row) => ({
    atMs: row.at,
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
