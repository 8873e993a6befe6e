// Field names as HTTP/1.1 spells them to the lower-case names that the proxy works with. A name is checked and lower-cased
// once in the process; afterwards it is one map look-up, and equal names are the same string object.

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

/** RFC 9110 §5.6.2. */
export const tokenPattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

// Peers choose the names, so the cache is bounded; what does not fit is worked out each time.
const maxCachedNames = 2048;
const cache = new Map<string, HeaderName>();

/** The name in lower case with its kind; undefined when it is no token. */
export function headerName(raw: string): HeaderName | undefined {
  const known = cache.get(raw);
  if (known !== undefined) return known;
  if (!tokenPattern.test(raw)) return undefined;
  const text = raw.toLowerCase();
  const name: HeaderName = cache.get(text) ?? { text, kind: kindByName.get(text) ?? headerKinds.plain };
  if (cache.size < maxCachedNames && raw.length <= 64) {
    // The slice that was looked up would keep its whole head alive.
    cache.set(Buffer.from(raw, "latin1").toString("latin1"), name);
  }
  return name;
}
