// The middle of several rounds: one disturbed round does not move it.

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle];
  if (upper === undefined) throw new Error("no values");
  return sorted.length % 2 === 1 ? upper : (sorted[middle - 1]! + upper) / 2;
}
