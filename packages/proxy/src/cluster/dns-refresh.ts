// When a name is asked for again (config.cluster.v3.Cluster: dns_refresh_rate, respect_dns_ttl, dns_jitter,
// dns_failure_refresh_rate; DnsCacheConfig: dns_min_refresh_rate).

export interface DnsRefresh {
  readonly intervalMs: number;
  readonly respectsTtl: boolean;
  /** Answers that hold for less are kept for so long all the same. */
  readonly minIntervalMs: number;
  /** Up to so much is added to each wait after an answer. */
  readonly jitterMs: number;
  /** Undefined = after a failure the wait is `intervalMs`. */
  readonly failure: { readonly baseMs: number; readonly maxMs: number } | undefined;
}

/** Above it the time is taken for 0 (RFC 2181 §8). */
const longestTtlMs = (2 ** 31 - 1) * 1000;
/** However long an answer says that it holds (RFC 8767 §4): a mistake or a lie does not stay for years. */
const longestHeededMs = 604_800_000;

/** An answer of the time 0 holds for the refresh rate (Envoy: StrictDnsClusterImpl). */
export function refreshAfterAnswerMs(refresh: DnsRefresh, ttlMs: number | undefined, random: () => number): number {
  const heeded = refresh.respectsTtl && ttlMs !== undefined && ttlMs > 0 && ttlMs <= longestTtlMs;
  const waitMs = heeded ? Math.max(Math.min(ttlMs, longestHeededMs), refresh.minIntervalMs) : refresh.intervalMs;
  return waitMs + Math.floor(random() * refresh.jitterMs);
}

/** `failures` in a row, the last one included: a random part of a limit that doubles (JitteredExponentialBackOff). */
export function refreshAfterFailureMs(refresh: DnsRefresh, failures: number, random: () => number): number {
  const { failure, intervalMs } = refresh;
  if (failure === undefined) return intervalMs;
  const limitMs = Math.min(failure.maxMs, failure.baseMs * 2 ** Math.min(failures - 1, 30));
  return Math.max(1, Math.floor(random() * limitMs));
}
