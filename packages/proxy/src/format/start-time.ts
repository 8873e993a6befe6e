// `%START_TIME%` and its kin: the default is ISO 8601 with milliseconds, else strftime specifiers and Envoy's fractions
// of a second (`%3f`, `%6f`, `%9f`); times are UTC.

let cachedSecond = Number.NaN;
let cachedText = "";

/** `2026-11-20T12:00:00.123Z`. A second's text is kept: under load most requests share it. */
export function isoTime(timeMs: number): string {
  const second = Math.floor(timeMs / 1000);
  if (second !== cachedSecond) {
    cachedSecond = second;
    cachedText = new Date(second * 1000).toISOString().slice(0, 20);
  }
  const millis = Math.floor(timeMs) - second * 1000;
  return `${cachedText}${millis < 10 ? "00" : millis < 100 ? "0" : ""}${millis}Z`;
}

const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

const two = (value: number): string => String(value).padStart(2, "0");

type Specifier = (date: Date, timeMs: number) => string;

const specifiers: Readonly<Record<string, Specifier>> = {
  Y: (date) => String(date.getUTCFullYear()),
  y: (date) => two(date.getUTCFullYear() % 100),
  m: (date) => two(date.getUTCMonth() + 1),
  d: (date) => two(date.getUTCDate()),
  e: (date) => String(date.getUTCDate()).padStart(2),
  H: (date) => two(date.getUTCHours()),
  I: (date) => two(((date.getUTCHours() + 11) % 12) + 1),
  M: (date) => two(date.getUTCMinutes()),
  S: (date) => two(date.getUTCSeconds()),
  p: (date) => (date.getUTCHours() < 12 ? "AM" : "PM"),
  F: (date) => date.toISOString().slice(0, 10),
  T: (date) => date.toISOString().slice(11, 19),
  D: (date) => `${two(date.getUTCMonth() + 1)}/${two(date.getUTCDate())}/${two(date.getUTCFullYear() % 100)}`,
  R: (date) => date.toISOString().slice(11, 16),
  a: (date) => weekdays[date.getUTCDay()]!.slice(0, 3),
  A: (date) => weekdays[date.getUTCDay()]!,
  b: (date) => months[date.getUTCMonth()]!.slice(0, 3),
  B: (date) => months[date.getUTCMonth()]!,
  j: (date) => String(dayOfYear(date)).padStart(3, "0"),
  s: (date) => String(Math.floor(date.getTime() / 1000)),
  f: (_date, timeMs) => `${String(microsOf(timeMs)).padStart(6, "0")}000`,
  z: () => "+0000",
  Z: () => "UTC",
  n: () => "\n",
  t: () => "\t",
  "%": () => "%",
};

/** Of the second. A double holds no smaller part of today's time. */
function microsOf(timeMs: number): number {
  const secondMs = Math.floor(timeMs / 1000) * 1000;
  return Math.min(999_999, Math.round((timeMs - secondMs) * 1000));
}

function dayOfYear(date: Date): number {
  return Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 0)) / 86_400_000);
}

/** Of local time to UTC, east is negative. */
function offsetMinutes(timeMs: number): number {
  return new Date(timeMs).getTimezoneOffset();
}

/** `+0100` */
function offsetText(local: Date): string {
  const minutes = -offsetMinutes(local.getTime());
  const size = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}${two(size % 60)}`;
}

/** `2026-11-20T13:00:00.123+0100`. */
export function localIsoTime(timeMs: number): string {
  const local = new Date(timeMs - offsetMinutes(timeMs) * 60_000);
  return `${local.toISOString().slice(0, 23)}${offsetText(local)}`;
}

/** The formatter, or the reason why there is none. */
export function compileTimeFormat(
  format: string,
  zone: "utc" | "local" = "utc",
): ((timeMs: number) => string) | { readonly error: string } {
  const parts: (string | Specifier)[] = [];
  let rest = 0;
  for (const match of format.matchAll(/%([1-9]f|.)/g)) {
    parts.push(format.slice(rest, match.index));
    rest = match.index + match[0].length;
    const name = match[1]!;
    const digits = /^([1-9])f$/.exec(name)?.[1];
    if (digits !== undefined) parts.push((date, timeMs) => specifiers["f"]!(date, timeMs).slice(0, Number(digits)));
    else if (zone === "local" && name === "z") parts.push(offsetText);
    else if (specifiers[name] !== undefined) parts.push(specifiers[name]);
    else return { error: `unknown time specifier %${name}` };
  }
  parts.push(format.slice(rest));
  return (timeMs) => {
    // A date whose UTC is what the clock on the wall shows.
    const date = new Date(zone === "utc" ? timeMs : timeMs - offsetMinutes(timeMs) * 60_000);
    let text = "";
    for (const part of parts) text += typeof part === "string" ? part : part(date, timeMs);
    return text;
  };
}
