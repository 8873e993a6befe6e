// The lists that annotations and options of capture are made of: ports, ranges, interfaces, numbers of users. What is
// accepted here is written into a script for nft, so that nothing else may pass.
import { parseIpRange, withoutOverlaps, type IpRange } from "./ip-range.ts";

/** Of one list; a range of addresses holds more than a thousand names of anything. */
export const maxListEntries = 1000;

/** What is wrong with a value, as the rest of a sentence that begins with its name. */
export class WrongValue extends Error {
  override readonly name = "WrongValue";
}

const maxPort = 65_535;
/** The largest number that stands for a user; the one above says "no user". */
const maxUserId = 0xff_ff_ff_fe;

export function parsePort(text: string): number {
  return wholeNumber(text, 1, maxPort, "a port");
}

export function parsePorts(text: string): readonly number[] {
  return sorted(entries(text).map(parsePort));
}

export function parseUserIds(text: string): readonly number[] {
  return sorted(entries(text).map((entry) => wholeNumber(entry, 0, maxUserId, "the number of a user or group")));
}

export function parseRanges(text: string): readonly IpRange[] {
  const ranges = entries(text).map((entry) => {
    const range = parseIpRange(entry);
    if (range === undefined) throw new WrongValue(`${quoted(entry)} is no range of addresses, such as 10.0.0.0/8`);
    return range;
  });
  return withoutOverlaps(ranges);
}

/** Names as the kernel allows them (dev_valid_name), less what a shell or nft would read as something else. */
export function parseInterfaces(text: string): readonly string[] {
  return [...new Set(entries(text))].map((entry) => {
    if (!/^[A-Za-z0-9_.@-]{1,15}$/.test(entry) || entry === "." || entry === "..") {
      throw new WrongValue(`${quoted(entry)} is no name of a network interface, such as eth0`);
    }
    return entry;
  });
}

/** Parts between commas; an empty text has none. */
function entries(text: string): readonly string[] {
  if (text.trim() === "") return [];
  const parts = text.split(",").map((part) => part.trim());
  if (parts.length > maxListEntries) throw new WrongValue(`has ${parts.length} entries; at most ${maxListEntries} go`);
  if (parts.includes("")) throw new WrongValue("has a comma with nothing on one side");
  if (parts.includes("*"))
    throw new WrongValue('has "*" among others; it stands alone, where a list may be everything');
  return parts;
}

function wholeNumber(text: string, minimum: number, maximum: number, what: string): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= minimum && value <= maximum)) {
    throw new WrongValue(`${quoted(text)} is not ${what}: a whole number from ${minimum} to ${maximum}`);
  }
  return value;
}

function sorted(numbers: readonly number[]): readonly number[] {
  return [...new Set(numbers)].sort((a, b) => a - b);
}

const shownCharacters = 60;

function quoted(text: string): string {
  return JSON.stringify(text.length > shownCharacters ? `${text.slice(0, shownCharacters)}…` : text);
}
