// Finds what a misspelt name was probably meant to be.

/** Levenshtein's distance, given up beyond `limit`. */
function distance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      current.push(Math.min(replaced, previous[j]! + 1, current[j - 1]! + 1));
    }
    previous = current;
  }
  return previous[b.length]!;
}

const normalized = (name: string): string => name.replaceAll("_", "").toLowerCase();

// A name from a hostile or broken document is not worth comparing with hundreds of others.
const maxNameCharacters = 200;

/** The candidate that differs least, if it differs little: a third of its letters. */
export function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  if (name.length > maxNameCharacters) return undefined;
  const wanted = normalized(name);
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    const found = distance(wanted, normalized(candidate), bestDistance - 1);
    if (found < bestDistance) {
      best = candidate;
      bestDistance = found;
    }
  }
  return best;
}

export function didYouMean(name: string, candidates: Iterable<string>): string {
  const nearest = nearestName(name, candidates);
  return nearest === undefined ? "" : `; did you mean ${JSON.stringify(nearest)}?`;
}
