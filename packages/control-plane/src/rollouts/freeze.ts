// When nothing goes forward: by a flag, on days of the week, or once.
import type { RolloutFreeze } from "@tulle/config";

type Window = NonNullable<RolloutFreeze["windows"]>[number];

const dayNames = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] as const;
const minutesOfDay = 1440;

/** Why nothing may go forward now; undefined when something may. */
export function frozenReason(freeze: RolloutFreeze | undefined, nowMs: number): string | undefined {
  if (freeze === undefined) return undefined;
  if (freeze.enabled) return "frozen by freeze.enabled";
  const window = freeze.windows?.find((each) => holds(each, freeze.timeZone, nowMs));
  if (window === undefined) return undefined;
  if (window.end !== undefined) return `frozen until ${window.end}`;
  const days = window.days === undefined ? "" : ` (${window.days.join(", ")})`;
  return `frozen from ${window.from} to ${window.to}${days}, ${freeze.timeZone}`;
}

function holds({ days, from, to, start, end }: Window, timeZone: string, nowMs: number): boolean {
  if (start !== undefined && end !== undefined) return Date.parse(start) <= nowMs && nowMs < Date.parse(end);
  if (from === undefined || to === undefined) return false;
  const { day, minute } = localTime(nowMs, timeZone);
  const isOn = (name: string): boolean => days === undefined || days.some((each) => each === name);
  const [begin, finish] = [minutes(from), minutes(to)];
  if (begin < finish) return isOn(dayNames[day]!) && begin <= minute && minute < finish;
  // Over midnight: the day is that of its beginning.
  const dayBefore = dayNames[(day + 6) % 7]!;
  return (isOn(dayNames[day]!) && minute >= begin) || (isOn(dayBefore) && minute < finish);
}

function minutes(text: string): number {
  const [hours = 0, minute = 0] = text.split(":").map(Number);
  return hours * 60 + minute;
}

function localTime(nowMs: number, timeZone: string): { readonly day: number; readonly minute: number } {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    weekday: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  const parts = new Map(format.formatToParts(nowMs).map(({ type, value }) => [type, value]));
  const day = dayNames.findIndex((name) => name === parts.get("weekday"));
  return { day, minute: (Number(parts.get("hour")) * 60 + Number(parts.get("minute"))) % minutesOfDay };
}
