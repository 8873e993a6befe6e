// Which host pattern holds for a name, and what two patterns have in common.
import { hostCovers } from "@tulle/config";

/** The names that two patterns have in common: the narrower one, or undefined when they share none. */
export function hostIntersection(one: string, other: string): string | undefined {
  if (hostCovers(one, other)) return other;
  return hostCovers(other, one) ? one : undefined;
}

/** Things known by a host pattern. A mesh of thousands of Services asks for each of them. */
export class HostIndex<T> {
  readonly #exact = new Map<string, T>();
  /** Narrowest first. */
  readonly #wildcards: readonly { readonly pattern: string; readonly item: T }[];

  /** Of two equal patterns the first one counts. */
  constructor(entries: Iterable<readonly [pattern: string, item: T]>) {
    const wildcards = new Map<string, T>();
    for (const [pattern, item] of entries) {
      const map = pattern.startsWith("*") ? wildcards : this.#exact;
      if (!map.has(pattern)) map.set(pattern, item);
    }
    this.#wildcards = [...wildcards]
      .map(([pattern, item]) => ({ pattern, item }))
      .sort((a, b) => b.pattern.length - a.pattern.length);
  }

  /**
   * What the narrowest pattern that covers `host` stands for: the exact one, else the wildcard with the longest suffix.
   */
  find(host: string): T | undefined {
    return this.#exact.get(host) ?? this.#wildcards.find(({ pattern }) => hostCovers(pattern, host))?.item;
  }
}
