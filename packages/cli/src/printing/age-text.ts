// How long ago something was, in kubectl's few characters (k8s.io/apimachinery: duration.HumanDuration).

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;
const year = 365 * day;

/** From this many seconds on: the unit, and the smaller one that is shown beside it. */
const steps: readonly (readonly [from: number, unit: readonly [string, number], beside?: readonly [string, number]])[] =
  [
    [8 * year, ["y", year]],
    [2 * year, ["y", year], ["d", day]],
    [8 * day, ["d", day]],
    [2 * day, ["d", day], ["h", hour]],
    [8 * hour, ["h", hour]],
    [3 * hour, ["h", hour], ["m", minute]],
    [10 * minute, ["m", minute]],
    [2 * minute, ["m", minute], ["s", 1]],
  ];

/** `timestamp` is RFC 3339. */
export function ageText(timestamp: string | undefined, nowMs = Date.now()): string {
  const sinceMs = Date.parse(timestamp ?? "");
  if (Number.isNaN(sinceMs)) return "<unknown>";
  const seconds = Math.floor((nowMs - sinceMs) / 1000);
  // A clock that was set back a little.
  if (seconds < 0) return seconds < -1 ? "<invalid>" : "0s";
  const [, unit = ["s", 1] as const, beside] = steps.find(([from]) => seconds >= from) ?? [];
  const rest = beside === undefined ? 0 : Math.floor((seconds % unit[1]) / beside[1]);
  const small = beside === undefined || rest === 0 ? "" : `${rest}${beside[0]}`;
  return `${Math.floor(seconds / unit[1])}${unit[0]}${small}`;
}
