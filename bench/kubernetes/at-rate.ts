// Calls at a rate that does not wait for answers: what is late counts from when it was due.

export interface Latencies {
  readonly medianMs: number;
  readonly p99Ms: number;
}

/** Resolves when all have been answered; rejects with the first that fails. */
export async function atRate(
  perSecond: number,
  count: number,
  call: (number: number) => Promise<unknown>,
): Promise<Latencies> {
  const began = performance.now();
  const latenciesMs: number[] = [];
  const pending: Promise<void>[] = [];
  for (let number = 0; number < count; number++) {
    const dueMs = began + (number * 1000) / perSecond;
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    pending.push(call(number).then(() => void latenciesMs.push(performance.now() - dueMs)));
  }
  await Promise.all(pending);
  latenciesMs.sort((a, b) => a - b);
  const at = (share: number): number => latenciesMs[Math.min(count - 1, Math.floor(count * share))]!;
  return { medianMs: at(0.5), p99Ms: at(0.99) };
}
