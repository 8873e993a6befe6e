// Exchanges of HTTP/2 at random, sound ones all: what a client asks and what a host answers, with the ways in which
// both may give up. The same seed gives the same exchanges.

export type Field = readonly [name: string, value: string];

export interface Message {
  readonly fields: readonly Field[];
  /** Sent in these pieces. */
  readonly pieces: readonly Buffer[];
  readonly trailers: readonly Field[];
}

export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  readonly request: Message;
  /** Of interim answers. */
  readonly informational: readonly Field[];
  readonly status: number;
  readonly response: Message;
  /** Who resets the stream in the middle, and with which code; the client does behind the answer's head. */
  readonly reset: { readonly by: "client" | "host" | "host before its head"; readonly code: number } | undefined;
}

const methods = ["GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH", "x-Own"];
const names = [
  "x-a",
  "x-b",
  "x-long-name-of-a-field",
  "accept",
  "accept-language",
  "cache-control",
  "x_y",
  "x.1!#$%&'*",
];
const statuses = [200, 200, 200, 201, 204, 302, 304, 404, 500, 599];
/** Of RFC 9113 §7, and one that is unknown. REFUSED_STREAM is left out: a proxy may send that request again. */
const resetCodes = [1, 2, 5, 8, 11, 99];
const largestFieldBytes = 18_000;
const largestBodyBytes = 200_000;

const anyOf = <T>(list: readonly T[], random: () => number): T => list[Math.floor(random() * list.length)]!;
const below = (limit: number, random: () => number): number => Math.floor(random() * limit);

/** Small ones mostly, large ones now and then. */
const size = (largest: number, random: () => number): number => below(largest ** random(), random);

function value(random: () => number): string {
  const length = random() < 0.02 ? below(largestFieldBytes, random) : size(60, random);
  const characters = Array.from({ length }, () => String.fromCharCode(0x21 + below(0x5e, random)));
  // Blanks stand within: around a value they are none of it.
  for (let at = 1; at < length - 1; at += 1 + below(20, random))
    characters[at] = anyOf([" ", "\t", "\xe9", "\xff"], random);
  return characters.join("");
}

function fields(random: () => number, most: number): Field[] {
  return Array.from({ length: below(most, random) }, () => [anyOf(names, random), value(random)]);
}

function pieces(random: () => number): Buffer[] {
  if (random() < 0.3) return [];
  let left = size(largestBodyBytes, random);
  const all: Buffer[] = [];
  while (left > 0) {
    const length = Math.min(left, 1 + size(70_000, random));
    all.push(Buffer.alloc(length, below(256, random)));
    left -= length;
  }
  return all;
}

/** Node itself ends in an assertion where a stream is reset that has trailers to send: such messages have none. */
function message(random: () => number, hasBody: boolean, mayHaveTrailers: boolean): Message {
  const body = hasBody ? pieces(random) : [];
  const bytes = body.reduce((sum, piece) => sum + piece.length, 0);
  const declared: Field[] = body.length > 0 && random() < 0.4 ? [["content-length", String(bytes)]] : [];
  const trailers =
    hasBody && mayHaveTrailers && random() < 0.3 ? fields(random, 4).filter(([name]) => name.startsWith("x")) : [];
  return { fields: [...fields(random, 8), ...declared], pieces: body, trailers };
}

export function randomExchange(random: () => number): Exchange {
  const method = anyOf(methods, random);
  const status = anyOf(statuses, random);
  const hasAnswerBody = method !== "HEAD" && status !== 204 && status !== 304;
  // Where the head ends the answer there is nothing to give up behind it.
  const by = hasAnswerBody
    ? anyOf(["client", "host", "host before its head"] as const, random)
    : "host before its head";
  const isReset = random() < 0.05;
  return {
    method,
    path: `/${anyOf(["", "a", "a/b;c", "%2e%2e/~", "a?b=c&d=%00", "?", "x".repeat(below(300, random))], random)}`,
    authority: anyOf(["a", "shop.example.com", "shop.example.com:8080", "[::1]:80"], random),
    request: message(random, method !== "GET" && method !== "HEAD", !isReset),
    informational: random() < 0.1 ? [["x-early", value(random)]] : [],
    status,
    response: message(random, hasAnswerBody, !isReset),
    reset: isReset ? { by, code: anyOf(resetCodes, random) } : undefined,
  };
}
