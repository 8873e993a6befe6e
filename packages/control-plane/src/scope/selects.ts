// Label selectors, as Kubernetes means them.

/** Whether all labels of `selector` are among `labels`; an empty selector selects everything. */
export function selects(selector: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}
