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

/** An answer of the time 0 holds for the refresh rate (Envoy: StrictDnsClusterImpl). */
export function refreshAfterAnswerMs(refresh: DnsRefresh, ttlMs: number | undefined, random: () => number): number {
  const heeded = refresh.respectsTtl && ttlMs !== undefined && ttlMs > 0;
  const waitMs = heeded ? Math.max(ttlMs, refresh.minIntervalMs) : refresh.intervalMs;
  return waitMs + Math.floor(random() * refresh.jitterMs);
}

/** `failures` in a row, the last one included: a random part of a limit that doubles (JitteredExponentialBackOff). */
export function refreshAfterFailureMs(refresh: DnsRefresh, failures: number, random: () => number): number {
  const { failure, intervalMs } = refresh;
  if (failure === undefined) return intervalMs;
  const limitMs = Math.min(failure.maxMs, failure.baseMs * 2 ** Math.min(failures - 1, 30));
  return Math.max(1, Math.floor(random() * limitMs));
}
