// How requests are shared among the priority levels of a cluster (Envoy: "Priority levels", "Degraded endpoints" and
// "Panic threshold" of its load balancing). A level counts as whole while 100/1.4 percent of its hosts are healthy;
// what it lacks goes to the next, and what healthy hosts of all levels lack to degraded ones.

/** ClusterLoadAssignment.Policy.overprovisioning_factor, its default. */
export const overprovisioningPercent = 140;

export interface PriorityLevel {
  readonly hosts: number;
  /** Of the hosts, those that count neither for nor against it. */
  readonly excluded: number;
  readonly healthy: number;
  readonly degraded: number;
}

export interface PriorityShare {
  /** Of requests, in whole percent, for healthy hosts; those of all levels and for degraded hosts add up to 100. */
  readonly percent: number;
  readonly degradedPercent: number;
  /** All its hosts are used, healthy or not. */
  readonly isInPanic: boolean;
}

/** `levels` in the order of priority. */
export function priorityShares(levels: readonly PriorityLevel[], panicThresholdPercent: number): PriorityShare[] {
  const availability = levels.map((level) => availablePercent(level, level.healthy));
  const degradedAvailability = levels.map((level) => availablePercent(level, level.degraded));
  const total = Math.min(100, sum(availability) + sum(degradedAvailability));
  // Where all levels together are whole, none is in panic, however little of it is healthy.
  const panics = levels.map((level) => total < 100 && level.hosts > 0 && isBelow(level, panicThresholdPercent));
  if (panicThresholdPercent === 0 && total === 0) return shares([100], [], panics);
  const hosts = sum(levels.map((level) => level.hosts));
  if (panics.every(Boolean)) {
    const bySize = levels.map((level) => (100 * level.hosts) / hosts);
    return shares(filled(bySize), [], panics);
  }
  const wanted = [...availability, ...degradedAvailability].map((percent) => (100 * percent) / total);
  const given = filled(wanted);
  return shares(given.slice(0, levels.length), given.slice(levels.length), panics);
}

function availablePercent({ hosts, excluded }: PriorityLevel, available: number): number {
  const counted = hosts - excluded;
  return counted === 0 ? 0 : Math.min(100, Math.floor((overprovisioningPercent * available) / counted));
}

function isBelow({ hosts, excluded, healthy, degraded }: PriorityLevel, thresholdPercent: number): boolean {
  const counted = hosts - excluded;
  return (counted === 0 ? 0 : (100 * (healthy + degraded)) / counted) < thresholdPercent;
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

function shares(percents: readonly number[], degraded: readonly number[], panics: readonly boolean[]): PriorityShare[] {
  return panics.map((isInPanic, index) => ({
    percent: percents[index] ?? 0,
    degradedPercent: degraded[index] ?? 0,
    isInPanic,
  }));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
