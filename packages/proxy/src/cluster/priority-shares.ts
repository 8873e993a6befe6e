// How requests are shared among the priority levels of a cluster (Envoy: "Priority levels" and "Panic threshold" of its
// load balancing). A level counts as whole while 100/1.4 percent of its hosts are healthy; what it lacks goes to the
// next.

/** ClusterLoadAssignment.Policy.overprovisioning_factor, its default. */
export const overprovisioningPercent = 140;

export interface PriorityLevel {
  readonly hosts: number;
  readonly healthy: number;
}

export interface PriorityShare {
  /** Of requests, in whole percent; those of all levels add up to 100. */
  readonly percent: number;
  /** All its hosts are used, healthy or not. */
  readonly isInPanic: boolean;
}

/** `levels` in the order of priority. */
export function priorityShares(levels: readonly PriorityLevel[], panicThresholdPercent: number): PriorityShare[] {
  const availability = levels.map(({ hosts, healthy }) =>
    hosts === 0 ? 0 : Math.min(100, Math.floor((overprovisioningPercent * healthy) / hosts)),
  );
  const total = Math.min(100, sum(availability));
  // Where all levels together are whole, none is in panic, however little of it is healthy.
  const panics = levels.map(
    ({ hosts, healthy }) => total < 100 && hosts > 0 && (100 * healthy) / hosts < panicThresholdPercent,
  );
  if (panicThresholdPercent === 0 && total === 0) return shares([100], panics);
  const hosts = sum(levels.map((level) => level.hosts));
  if (panics.every(Boolean)) return shares(filled(levels.map((level) => (100 * level.hosts) / hosts)), panics);
  return shares(filled(availability.map((percent) => (100 * percent) / total)), panics);
}

/** At most 100 in all, from the first on; what rounding leaves over goes to the first that has any. */
function filled(percents: readonly number[]): number[] {
  let rest = 100;
  const taken = percents.map((percent) => {
    const own = Math.min(rest, Math.floor(percent));
    rest -= own;
    return own;
  });
  const first = taken.findIndex((own) => own > 0);
  if (first >= 0) taken[first]! += rest;
  return taken;
}

function shares(percents: readonly number[], panics: readonly boolean[]): PriorityShare[] {
  return panics.map((isInPanic, index) => ({ percent: percents[index] ?? 0, isInPanic }));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
