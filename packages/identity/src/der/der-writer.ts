// Writes DER (X.690 §10) for certificates and requests. Hand-written because the usual X.509 libraries add 25 MB and
// 100 ms to each sidecar, which needs only one request a day; tests compare the results with OpenSSL and with such a
// library.

/** One element: its identifier octet, its length, and its content in parts. */
export function element(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([Uint8Array.of(tag), lengthOctets(length), ...parts]);
}

function lengthOctets(length: number): Uint8Array {
  if (length < 0x80) return Uint8Array.of(length);
  const octets: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) octets.unshift(rest % 256);
  return Uint8Array.of(0x80 | octets.length, ...octets);
}

export function sequence(...parts: readonly Uint8Array[]): Buffer {
  return element(0x30, ...parts);
}

export function set(...parts: readonly Uint8Array[]): Buffer {
  return element(0x31, ...parts);
}

/** `[n]` around whole elements. */
export function explicit(number: number, ...parts: readonly Uint8Array[]): Buffer {
  return element(0xa0 | number, ...parts);
}

/** `[n]` in place of a primitive element's own identifier. */
export function implicit(number: number, content: Uint8Array): Buffer {
  return element(0x80 | number, content);
}

/** A non-negative integer from its big-endian octets, made minimal. */
export function integer(octets: Uint8Array): Buffer {
  let start = 0;
  while (start < octets.length - 1 && octets[start] === 0) start += 1;
  const minimal = octets.subarray(start);
  return element(0x02, ...((minimal[0] ?? 0) >= 0x80 ? [Uint8Array.of(0)] : []), minimal);
}

export function smallInteger(value: number): Buffer {
  return integer(Uint8Array.of(value));
}

export function booleanTrue(): Buffer {
  return element(0x01, Uint8Array.of(0xff));
}

export function octetString(content: Uint8Array): Buffer {
  return element(0x04, content);
}

export function bitString(content: Uint8Array, unusedBits = 0): Buffer {
  return element(0x03, Uint8Array.of(unusedBits), content);
}

export function nullValue(): Buffer {
  return element(0x05);
}

export function utf8String(text: string): Buffer {
  return element(0x0c, Buffer.from(text, "utf8"));
}

/** `2.5.29.17` → its element. */
export function objectIdentifier(dotted: string): Buffer {
  const [first, second, ...rest] = dotted.split(".").map(Number);
  const octets = [first! * 40 + second!, ...rest].flatMap((arc) => {
    const digits = [arc % 128];
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) digits.unshift((left % 128) | 0x80);
    return digits;
  });
  return element(0x06, Uint8Array.from(octets));
}

/**
 * A certificate's time: UTCTime up to 2049, GeneralizedTime from then on (RFC 5280 §4.1.2.5). Fractions of a second are
 * cut.
 */
export function time(atMs: number): Buffer {
  const digits = new Date(atMs).toISOString().replaceAll(/[-:T]|\.\d+Z$/g, "");
  const year = Number(digits.slice(0, 4));
  return year >= 1950 && year < 2050
    ? element(0x17, Buffer.from(`${digits.slice(2)}Z`, "latin1"))
    : element(0x18, Buffer.from(`${digits}Z`, "latin1"));
}
