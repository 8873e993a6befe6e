// W3C Trace Context, level 1 (https://www.w3.org/TR/trace-context/): what `traceparent` and `tracestate` of a request
// say of the span that it belongs to. What is not sound by the letter is as good as absent, and a new trace begins
// (§4.3).

export interface TraceParent {
  /** Thirty-two hexadecimal digits. */
  readonly traceId: string;
  /** Sixteen. */
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** version, trace-id, parent-id and flags, as version 00 has them (§3.2.2). */
const parentCharacters = 55;
const invalidVersion = "ff";

/**
 * Undefined: it is not sound. A later version is read as far as 00 goes, and may go on behind another dash (§3.2.4).
 */
export function parseTraceParent(text: string): TraceParent | undefined {
  if (text.length < parentCharacters) return undefined;
  if (text[2] !== "-" || text[35] !== "-" || text[52] !== "-") return undefined;
  const version = text.slice(0, 2);
  if (!isHex(text, 0, 2) || version === invalidVersion) return undefined;
  if (text.length > parentCharacters && (version === "00" || text[parentCharacters] !== "-")) return undefined;
  if (!isHex(text, 3, 35) || !isHex(text, 36, 52) || !isHex(text, 53, 55)) return undefined;
  if (isZero(text, 3, 35) || isZero(text, 36, 52)) return undefined;
  // Bits of the second flag digit; all but the lowest are for later versions to name.
  const isSampled = (Number.parseInt(text[54]!, 16) & 1) === 1;
  return { traceId: text.slice(3, 35), spanId: text.slice(36, 52), isSampled };
}

export function traceParentText(traceId: string, spanId: string, isSampled: boolean): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** In lower case: capitals are none (§3.2.2.2). */
function isHex(text: string, from: number, to: number): boolean {
  for (let index = from; index < to; index += 1) {
    const code = text.charCodeAt(index);
    if (!((code >= 48 && code <= 57) || (code >= 97 && code <= 102))) return false;
  }
  return true;
}

function isZero(text: string, from: number, to: number): boolean {
  for (let index = from; index < to; index += 1) if (text.charCodeAt(index) !== 48) return false;
  return true;
}

/** §3.3.1.1. */
export const maxTraceStateMembers = 32;
/** §3.3.1.5: so many have to be passed on, and no more are. */
export const maxTraceStateCharacters = 512;
/** What goes first where there are more (§3.3.1.5). */
const longMemberCharacters = 128;

/** Printable ASCII without comma and equals sign, not ending in a space (§3.3.1.3.2). */
const memberPattern =
  /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/**
 * The list to be passed on, of all `tracestate` headers joined by commas; undefined: none, or not sound, by which the
 * whole list goes and the `traceparent` stays (§4.3).
 */
export function passedTraceState(text: string): string | undefined {
  // What no sound list can be as long as is not looked at.
  if (text.length > maxTraceStateMembers * 520) return undefined;
  const members = text
    .split(",")
    .map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ""))
    .filter((member) => member !== "");
  if (members.length === 0 || members.length > maxTraceStateMembers) return undefined;
  if (!members.every((member) => memberPattern.test(member))) return undefined;
  const keys = new Set(members.map((member) => member.slice(0, member.indexOf("="))));
  if (keys.size !== members.length) return undefined;
  return shortened(members);
}

function shortened(members: readonly string[]): string | undefined {
  let characters = members.reduce((sum, member) => sum + member.length + 1, -1);
  if (characters <= maxTraceStateCharacters) return members.join(",");
  const kept = [...members];
  for (let index = kept.length - 1; index >= 0 && characters > maxTraceStateCharacters; index -= 1) {
    if (kept[index]!.length <= longMemberCharacters) continue;
    characters -= kept[index]!.length + 1;
    kept.splice(index, 1);
  }
  while (characters > maxTraceStateCharacters && kept.length > 0) characters -= kept.pop()!.length + 1;
  return kept.length === 0 ? undefined : kept.join(",");
}
