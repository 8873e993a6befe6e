// What requests may add to a process's series: so many values of one label, and so many combinations of labels of one
// family. What comes beyond is counted under `other`, so that sums stay right however many hosts, paths and peers
// somebody makes up.
import type { Labels } from "./metric.ts";

export interface LabelLimitOptions {
  /** Values of one label told apart, over all families that requests label. */
  readonly maxValuesOfLabel?: number;
  /** Series of one such family. */
  readonly maxSeriesOfFamily?: number;
}

const defaultMaxValuesOfLabel = 1000;
const defaultMaxSeriesOfFamily = 4096;

/** Stands for all that there was no room for. */
export const otherValue = "other";

export class LabelLimits {
  readonly maxSeriesOfFamily: number;
  readonly #maxValuesOfLabel: number;
  #valuesOf = new Map<string, Set<string>>();

  constructor(options: LabelLimitOptions = {}) {
    this.#maxValuesOfLabel = options.maxValuesOfLabel ?? defaultMaxValuesOfLabel;
    this.maxSeriesOfFamily = options.maxSeriesOfFamily ?? defaultMaxSeriesOfFamily;
  }

  /** The same labels, with `other` where a label has had too many values already. */
  admit(labels: Labels): Labels {
    let folded: Record<string, string> | undefined;
    for (const name in labels) {
      if (this.#admits(name, labels[name]!)) continue;
      folded ??= { ...labels };
      folded[name] = otherValue;
    }
    return folded ?? labels;
  }

  #admits(name: string, value: string): boolean {
    let values = this.#valuesOf.get(name);
    if (values === undefined) {
      values = new Set();
      this.#valuesOf.set(name, values);
    }
    if (values.has(value) || value === otherValue) return true;
    if (values.size >= this.#maxValuesOfLabel) return false;
    values.add(value);
    return true;
  }

  /** Values that no series has any more make room for others. */
  keepOnly(remaining: Iterable<Labels>): void {
    this.#valuesOf = new Map();
    for (const labels of remaining) this.admit(labels);
  }
}

export function allOther(labels: Labels): Labels {
  return Object.fromEntries(Object.keys(labels).map((name) => [name, otherValue]));
}
