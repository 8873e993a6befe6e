// Which host pattern holds for a name, and what two patterns have in common.
import { hostCovers } from "@tulle/config";

/** The names that two patterns have in common: the narrower one, or undefined when they share none. */
export function hostIntersection(one: string, other: string): string | undefined {
  if (hostCovers(one, other)) return other;
  return hostCovers(other, one) ? one : undefined;
}

/** The narrowest pattern that covers `host`: the exact one, else the wildcard with the longest suffix. */
export function mostSpecific<T>(candidates: readonly T[], host: string, patternOf: (item: T) => string): T | undefined {
  let best: T | undefined;
  let bestLength = -1;
  for (const candidate of candidates) {
    const pattern = patternOf(candidate);
    if (pattern === host) return candidate;
    if (pattern.length > bestLength && hostCovers(pattern, host)) {
      best = candidate;
      bestLength = pattern.length;
    }
  }
  return best;
}
