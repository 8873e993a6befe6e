// Request messages put together at random from sound and unsound pieces, among them the known ways of smuggling:
// framing fields that contradict each other, odd blanks, line ends and numbers. The same seed gives the same messages.

/** Mulberry32: numbers in [0, 1). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const methods = ["GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE"];
const oddMethods = ["get", "G ET", "FOO", "POST\t", "\0GET", ""];
const targets = ["/", "/a/b?c=d", "/%2e%2e/", "http://b.example/x", "*", "/a;b=c", "/~|{}"];
const oddTargets = ["", "a", "/a b", "/\x01", "/\xe9", "http://", "//x", "/a#b"];
const lineEnds = ["\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r", "\r\r\n", "\r\n ", "\n\r"];
const framing = ["Content-Length: 5", "Content-Length: 0", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"];
const oddFraming = [
  "Content-Length : 5",
  "Content-Length: +5",
  "Content-Length: 5, 5",
  "Content-Length: 0x5",
  "Content-Length: 5 5",
  "Content-Length:\t5",
  "Content-Length: 05",
  "Content-Length: 1e1",
  "Content-Length: -1",
  "Content-Length: 18446744073709551621",
  "Transfer-Encoding: xchunked",
  "Transfer-Encoding: chunked, chunked",
  "Transfer-Encoding: identity",
  "Transfer-Encoding: chunked;q=1",
  "Transfer-Encoding: \x0bchunked",
  "Transfer-Encoding : chunked",
  "Transfer-Encoding:chunked",
  "Transfer-Encoding: 'chunked'",
  "Transfer-Encoding\t: chunked",
  "\tTransfer-Encoding: chunked",
  "Transfer_Encoding: chunked",
  "transfer-ENCODING: CHUNKED",
  "X: y\rTransfer-Encoding: chunked",
  "Connection: Content-Length",
];
/** Longer than the room in which a head that comes in pieces is gathered at first. */
export const longField = `X-Long: ${"a".repeat(600)}`;
const fields = [
  longField,
  "Accept: */*",
  "X-A:  b ",
  "X-Empty:",
  "Cookie: a=b; c=d",
  "Connection: keep-alive",
  "X-High: \xe9\xff",
];
const oddFields = ["X : a", ": a", "X(1): a", "nocolon", "X: \0", "X: a\x7f", "Host: evil", "\x80: a", "X:\x0b"];
const bodies = ["hello", "", "5\r\nhello\r\n0\r\n\r\n", "0\r\n\r\n", "1\r\na\r\n4;x=y\r\nello\r\n0\r\nT: v\r\n\r\n"];
const oddBodies = [
  "5\nhello\n0\n\n",
  "5 \r\nhello\r\n0\r\n\r\n",
  "0x5\r\nhello\r\n0\r\n\r\n",
  "+5\r\nhello\r\n0\r\n\r\n",
  "5\r\nhelloX\r\n0\r\n\r\n",
  "05\r\nhello\r\n00\r\n\r\n",
  "5;\x01\r\nhello\r\n0\r\n\r\n",
  "ffffffffffffffffff5\r\nhello\r\n0\r\n\r\n",
  "5\r\nhello\r\n0\r\nContent-Length: 3\r\n\r\n",
  "5\r\nhello\r\n0\r\n\rGET / HTTP/1.1\r\n\r\n",
  "-1\r\n",
  "5\r\nhello\r0\r\n\r\n",
];

/** One message, as latin1 text; about half of them are sound. */
export function randomRequest(random: () => number): string {
  const pick = (sound: readonly string[], odd: readonly string[], oddShare: number): string => {
    const from = random() < oddShare ? odd : sound;
    return from[Math.floor(random() * from.length)]!;
  };
  const oddity = random() < 0.5 ? 0 : 0.12;
  const lineEnd = (): string => (random() < oddity ? lineEnds[Math.floor(random() * lineEnds.length)]! : "\r\n");
  const version = pick(["HTTP/1.1"], ["HTTP/1.0", "HTTP/2.0", "HTTP/1.1 ", "http/1.1", "HTTP/1.10"], oddity / 2);
  let text = `${pick(methods, oddMethods, oddity / 2)} ${pick(targets, oddTargets, oddity / 2)} ${version}${lineEnd()}`;
  text += `Host: a${lineEnd()}`;
  const count = Math.floor(random() * 4);
  for (let index = 0; index < count; index += 1) text += `${pick(fields, oddFields, oddity)}${lineEnd()}`;
  const framings = random() < 0.6 ? 1 : Math.floor(random() * 3);
  for (let index = 0; index < framings; index += 1) text += `${pick(framing, oddFraming, oddity * 2)}${lineEnd()}`;
  return `${text}${lineEnd()}${pick(bodies, oddBodies, oddity * 2)}`;
}

/** The bytes of a message cut at a few random places. */
export function randomCuts(text: string, random: () => number): Buffer[] {
  const bytes = Buffer.from(text, "latin1");
  const cuts = Array.from({ length: Math.floor(random() * 4) }, () => Math.floor(random() * bytes.length));
  const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
  return places
    .slice(1)
    .map((end, index) => bytes.subarray(places[index], end))
    .filter((part) => part.length > 0);
}
