// Counts failed guesses and says how long the next one has to wait. Delays grow and end by themselves; nothing is ever
// locked, or anybody could lock anybody out.
import { digest } from "../crypto/secrets.ts";
import type { Database, Reader, Transaction } from "./database.ts";

export interface ThrottlePolicy {
  /** Failures before the first delay. */
  readonly freeFailures: number;
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Quiet time after which failures are forgotten. */
  readonly forgetMs: number;
}

/** One account from one network, or from one browser that is known to be its owner's. */
export const passwordThrottle: ThrottlePolicy = {
  freeFailures: 5,
  firstDelayMs: 1000,
  maxDelayMs: 60_000,
  forgetMs: 15 * 60_000,
};

/** One account from everywhere, for who guesses from many networks; a known browser does not wait for it. */
export const accountThrottle: ThrottlePolicy = { ...passwordThrottle, freeFailures: 50 };

/** One network at all accounts: an office of hundreds behind one address mistypes that often. */
export const networkThrottle: ThrottlePolicy = { ...passwordThrottle, freeFailures: 100 };

export const clientSecretThrottle: ThrottlePolicy = {
  freeFailures: 10,
  firstDelayMs: 1000,
  maxDelayMs: 30_000,
  forgetMs: 5 * 60_000,
};

/**
 * Rows of all accounts and networks together, about 2 MB: who has a network of IPv6 has 65,536 that count by
 * themselves.
 */
export const maxThrottles = 10_000;
const trimStepRows = 1000;

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
  // A clock that was set back makes nobody wait for longer.
  return Math.min(Math.max(0, lastFailureAtMs + delay - nowMs), delay);
}

/** Who guesses at what, such as an account from a network; only its digest is kept. */
export interface Throttled {
  readonly policy: ThrottlePolicy;
  readonly subject: string;
}

/** Milliseconds until the next attempt is free; the longest wait of all that apply. */
export async function throttleState(reader: Reader, throttled: readonly Throttled[]): Promise<number> {
  let longestMs = 0;
  for (const { policy, subject } of throttled) {
    const row = await reader.get<{ failures: number; last_failure_at: number }>(
      "SELECT failures, last_failure_at FROM throttles WHERE id = ? AND expires_at > ?",
      [digest(subject), reader.nowMs],
    );
    if (row === undefined) continue;
    longestMs = Math.max(longestMs, throttleWaitMs(policy, row.failures, row.last_failure_at, reader.nowMs));
  }
  return longestMs;
}

export async function countFailure(transaction: Transaction, throttled: readonly Throttled[]): Promise<void> {
  const now = transaction.nowMs;
  for (const { policy, subject } of throttled) {
    await transaction.run(
      `INSERT INTO throttles (id, failures, last_failure_at, expires_at) VALUES (?, 1, ?, ?)
     ON CONFLICT (id) DO UPDATE SET failures = CASE WHEN throttles.expires_at > ? THEN throttles.failures + 1 ELSE 1 END,
     last_failure_at = excluded.last_failure_at, expires_at = excluded.expires_at`,
      [digest(subject), now, now + policy.forgetMs, now],
    );
  }
}

/** Takes back what was counted before the attempt was looked at, and turned out to be no failure. */
export async function uncountFailure(transaction: Transaction, throttled: readonly Throttled[]): Promise<void> {
  for (const { subject } of throttled) {
    const id = digest(subject);
    await transaction.run("DELETE FROM throttles WHERE id = ? AND failures <= 1", [id]);
    await transaction.run("UPDATE throttles SET failures = failures - 1 WHERE id = ?", [id]);
  }
}

export async function forgetFailures(transaction: Transaction, { subject }: Throttled): Promise<void> {
  await transaction.run("DELETE FROM throttles WHERE id = ?", [digest(subject)]);
}

/**
 * Deletes some of what is beyond the limit, and answers whether there was anything. Who failed least goes first, so
 * that no crowd of single failures makes anybody forget the guesses at one account.
 */
export async function trimThrottles(database: Database): Promise<boolean> {
  const row = await database.read((reader) => reader.get<{ n: number }>("SELECT count(*) AS n FROM throttles"));
  const excess = (row?.n ?? 0) - maxThrottles;
  if (excess <= 0) return false;
  await database.transaction((transaction) =>
    transaction.run(
      "DELETE FROM throttles WHERE id IN (SELECT id FROM throttles ORDER BY failures, last_failure_at LIMIT ?)",
      [Math.min(excess, trimStepRows)],
    ),
  );
  return true;
}
