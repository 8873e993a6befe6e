// Field names as HTTP/1.1 spells them to the lower-case names that the proxy works with. A name that has been seen
// before is recognised in place, by a hash that its reader computes in passing: no text is cut out and equal names are
// one string object.

/** What a field means to the codec itself; `plain` ones are only carried. */
export const headerKinds = {
  plain: 0,
  host: 1,
  contentLength: 2,
  transferEncoding: 3,
  connection: 4,
  upgrade: 5,
  te: 6,
  /** keep-alive, proxy-connection: dropped without a look (RFC 9110 §7.6.1). */
  hopByHop: 7,
  expect: 8,
  http2Settings: 9,
} as const;

export interface HeaderName {
  readonly text: string;
  readonly kind: number;
  readonly hash: number;
}

const kindByName = new Map<string, number>([
  ["host", headerKinds.host],
  ["content-length", headerKinds.contentLength],
  ["transfer-encoding", headerKinds.transferEncoding],
  ["connection", headerKinds.connection],
  ["upgrade", headerKinds.upgrade],
  ["te", headerKinds.te],
  ["keep-alive", headerKinds.hopByHop],
  ["proxy-connection", headerKinds.hopByHop],
  ["expect", headerKinds.expect],
  ["http2-settings", headerKinds.http2Settings],
]);

/** Lower-case code of each character that a token may hold (RFC 9110 §5.6.2), 0 for all others. */
export const tokenCodes = new Uint8Array(256);
for (const character of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") {
  const code = character.charCodeAt(0);
  tokenCodes[code] = code;
  tokenCodes[character.toUpperCase().charCodeAt(0)] = code;
}

/** One step of the hash of a name, over its lower-case codes. */
export function hashStep(hash: number, code: number): number {
  return (Math.imul(hash, 31) + code) | 0;
}

// Peers choose the names, so the table is bounded; what does not fit is made anew each time. A quarter full at most, so
// that look-ups stay short even where somebody makes names collide.
const tableSize = 4096;
const maxKnownNames = 1024;
const maxProbes = 16;
const table: (HeaderName | undefined)[] = Array.from({ length: tableSize });
let knownNames = 0;

/** The name at `start` to `end` of `text`, whose characters are all of a token and whose hash is given. */
export function headerNameAt(text: string, start: number, end: number, hash: number): HeaderName {
  let index = hash & (tableSize - 1);
  for (let probe = 0; probe < maxProbes; probe += 1) {
    const known = table[index];
    if (known === undefined) return learn(text.slice(start, end).toLowerCase(), hash, index);
    if (known.hash === hash && isAt(known.text, text, start, end)) return known;
    index = (index + 1) & (tableSize - 1);
  }
  return makeName(text.slice(start, end).toLowerCase(), hash);
}

function isAt(name: string, text: string, start: number, end: number): boolean {
  const { length } = name;
  if (end - start !== length) return false;
  for (let index = 0; index < length; index += 1) {
    if (tokenCodes[text.charCodeAt(start + index)] !== name.charCodeAt(index)) return false;
  }
  return true;
}

function makeName(text: string, hash: number): HeaderName {
  return { text, kind: kindByName.get(text) ?? headerKinds.plain, hash };
}

function learn(text: string, hash: number, index: number): HeaderName {
  // A slice would keep the whole head alive that it was cut from.
  const name = makeName(Buffer.from(text, "latin1").toString("latin1"), hash);
  if (knownNames < maxKnownNames && text.length <= 64) {
    table[index] = name;
    knownNames += 1;
  }
  return name;
}
