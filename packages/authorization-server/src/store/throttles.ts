// Counts failed guesses and says how long the next one has to wait. Delays grow and end by themselves; nothing is ever
// locked, or anybody could lock anybody out.
import { digest } from "../crypto/secrets.ts";
import type { Reader, Transaction } from "./database.ts";

export interface ThrottlePolicy {
  /** Failures before the first delay. */
  readonly freeFailures: number;
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Quiet time after which failures are forgotten. */
  readonly forgetMs: number;
}

export const passwordThrottle: ThrottlePolicy = {
  freeFailures: 5,
  firstDelayMs: 1000,
  maxDelayMs: 60_000,
  forgetMs: 15 * 60_000,
};

export const clientSecretThrottle: ThrottlePolicy = {
  freeFailures: 10,
  firstDelayMs: 1000,
  maxDelayMs: 30_000,
  forgetMs: 5 * 60_000,
};

/** Milliseconds still to wait; 0 when an attempt is free. */
export function throttleWaitMs(
  policy: ThrottlePolicy,
  failures: number,
  lastFailureAtMs: number,
  nowMs: number,
): number {
  if (failures < policy.freeFailures) return 0;
  const doublings = Math.min(failures - policy.freeFailures, 20);
  const delay = Math.min(policy.firstDelayMs * 2 ** doublings, policy.maxDelayMs);
  return Math.max(0, lastFailureAtMs + delay - nowMs);
}

/** `subject` names who guesses at what, such as account and address; only its digest is kept. */
export async function throttleState(reader: Reader, policy: ThrottlePolicy, subject: string): Promise<number> {
  const row = await reader.get<{ failures: number; last_failure_at: number }>(
    "SELECT failures, last_failure_at FROM throttles WHERE id = ? AND expires_at > ?",
    [digest(subject), reader.nowMs],
  );
  return row === undefined ? 0 : throttleWaitMs(policy, row.failures, row.last_failure_at, reader.nowMs);
}

export async function countFailure(transaction: Transaction, policy: ThrottlePolicy, subject: string): Promise<void> {
  const now = transaction.nowMs;
  await transaction.run(
    `INSERT INTO throttles (id, failures, last_failure_at, expires_at) VALUES (?, 1, ?, ?)
     ON CONFLICT (id) DO UPDATE SET failures = CASE WHEN throttles.expires_at > ? THEN throttles.failures + 1 ELSE 1 END,
     last_failure_at = excluded.last_failure_at, expires_at = excluded.expires_at`,
    [digest(subject), now, now + policy.forgetMs, now],
  );
}

export async function forgetFailures(transaction: Transaction, subject: string): Promise<void> {
  await transaction.run("DELETE FROM throttles WHERE id = ?", [digest(subject)]);
}
