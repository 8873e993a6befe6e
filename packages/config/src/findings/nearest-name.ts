/** The name a person probably meant: used for unknown fields, kinds, hosts and subsets. */

/** Longest name that is compared; the comparison takes time in the square of it. */
const maxComparedLength = 128;

/**
 * The candidate nearest to `name` by edits (insert, remove, replace, swap of neighbours), case and `_`/`-` aside;
 * undefined when none is near enough to be meant: at most one edit for each three letters.
 */
export function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  if (name.length > maxComparedLength) return undefined;
  const wanted = simplify(name);
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) > bestDistance + 4) continue;
    const distance = editDistance(wanted, simplify(candidate));
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function simplify(name: string): string {
  return name.toLowerCase().replaceAll(/[-_\s]/g, "");
}

/** Number of edits between two texts (optimal string alignment). */
export function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      let cost = Math.min(replaced, previous[j]! + 1, current[j - 1]! + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, beforePrevious[j - 2]! + 1);
      current.push(cost);
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length]!;
}
