/** The order in which resources count where two say something of the same: the older one comes first. */
export interface Created {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly creationTimestamp?: string };
}

/** Oldest first where all know their creation time; else their order stays. */
export function oldestFirst<T extends Created>(resources: readonly T[]): readonly T[] {
  const timed = resources.filter(({ metadata }) => metadata.creationTimestamp !== undefined);
  if (timed.length !== resources.length) return resources;
  return [...resources].sort(
    (a, b) =>
      Date.parse(a.metadata.creationTimestamp!) - Date.parse(b.metadata.creationTimestamp!) ||
      compare(a.metadata.namespace, b.metadata.namespace) ||
      compare(a.metadata.name, b.metadata.name),
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
