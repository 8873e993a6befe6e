// What the smuggling corpus of HTTP/1.1 is in HTTP/2: fields that mean something else once they stand in lines of
// HTTP/1.1. Each row is one stream; `/smuggled` must never be taken for a request of its own.

type Field = readonly [name: string, value: string];

export interface Http2SmugglingEntry {
  readonly name: string;
  readonly fields: readonly Field[];
  readonly body: string;
  readonly trailers: readonly Field[];
  /** Otherwise it has to be refused. */
  readonly isSound: boolean;
}

const request = "GET /smuggled HTTP/1.1\r\nHost: b\r\n\r\n";
const base: readonly Field[] = [
  [":method", "POST"],
  [":scheme", "http"],
  [":path", "/"],
  [":authority", "a"],
];

function entry(name: string, fields: readonly Field[], more: Partial<Http2SmugglingEntry> = {}): Http2SmugglingEntry {
  return { name, fields, body: request, trailers: [], isSound: false, ...more };
}
const added = (name: string, field: Field, more: Partial<Http2SmugglingEntry> = {}): Http2SmugglingEntry =>
  entry(name, [...base, field], more);
const replaced = (name: string, value: string): readonly Field[] =>
  base.map(([other, before]) => [other, other === name ? value : before]);

const sound: readonly Http2SmugglingEntry[] = [
  entry("a body that is a request", base, { isSound: true }),
  added("content-length that is true", ["content-length", String(request.length)], { isSound: true }),
  added("te: trailers", ["te", "trailers"], { isSound: true }),
  added("host that is the authority", ["host", "a"], { isSound: true }),
  entry("trailers", base, { trailers: [["x-sum", "1"]], isSound: true }),
];

const lengths: readonly Http2SmugglingEntry[] = [
  added("H2.CL: 0", ["content-length", "0"]),
  added("H2.CL: too few", ["content-length", "3"]),
  added("H2.CL: too many", ["content-length", "1000"]),
  ...["+36", "0x24", "36, 36", "36 36", "-1", "", "1e1", "18446744073709551652"].map((value) =>
    added(`content-length: "${value}"`, ["content-length", value]),
  ),
  entry("two lengths", [...base, ["content-length", "0"], ["content-length", String(request.length)]]),
  added("a length in upper case", ["Content-Length", "0"]),
  entry("a length among trailers", base, { trailers: [["content-length", "0"]] }),
];

const connectionFields: readonly Http2SmugglingEntry[] = [
  ...["chunked", "identity", "x, chunked"].map((value) => added(`H2.TE: ${value}`, ["transfer-encoding", value])),
  added("a coding in upper case", ["Transfer-Encoding", "chunked"]),
  ...["connection", "keep-alive", "proxy-connection", "upgrade"].map((name) =>
    added(name, [name, "transfer-encoding"]),
  ),
  added("te: chunked", ["te", "chunked"]),
  entry("a coding among trailers", base, { trailers: [["transfer-encoding", "chunked"]] }),
];

/** Each piece ends a line for somebody, or a text. */
const injections = [`x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${request}`, "x\ny: z", "x\ry: z", "x\0y"];
const places: readonly ((text: string) => readonly Field[])[] = [
  ...[":method", ":scheme", ":path", ":authority"].map(
    (name) => (text: string) => replaced(name, name === ":path" ? `/${text}` : text),
  ),
  (text) => [...base, ["x-a", text]],
  (text) => [...base, [text, "a"]],
  (text) => [...base, ["cookie", text]],
  (text) => [...base, ["host", text]],
  (text) => [...base, [":protocol", text]],
];
const tunnels = places.flatMap((place, at) =>
  injections.map((text) => entry(`${JSON.stringify(text.slice(0, 4))} in place ${at}`, place(text))),
);

const pseudoFields: readonly Http2SmugglingEntry[] = [
  ...base.flatMap(([name, value]) => [
    added(`${name} twice`, [name, value]),
    entry(
      `${name} missing`,
      base.filter(([other]) => other !== name),
    ),
    entry(`${name} late`, [...base.filter(([other]) => other !== name), ["x-a", "b"], [name, value]]),
    entry(`${name} empty`, replaced(name, "")),
  ]),
  added("an unknown pseudo-field", [":x", "a"]),
  added(":status", [":status", "200"]),
  entry("a pseudo-field among trailers", base, { trailers: [[":path", "/smuggled"]] }),
];

const texts: readonly Http2SmugglingEntry[] = [
  entry("a path with a space", replaced(":path", "/ HTTP/1.1")),
  entry("a path with a tab", replaced(":path", "/\tHTTP/1.1")),
  entry("a path without a slash", replaced(":path", "smuggled")),
  entry("a method with a space", replaced(":method", "GET /smuggled HTTP/1.1")),
  entry("a method with a colon", replaced(":method", "GET:")),
  entry("an authority with a path", replaced(":authority", "a/smuggled")),
  entry("an authority with a space", replaced(":authority", "a b")),
  entry("an authority with a user", replaced(":authority", "a@b")),
  added("a host that is not the authority", ["host", "b"]),
  added("a name in upper case", ["X-A", "b"]),
  added("a name with a space", ["x a", "b"]),
  added("a name with a colon", ["transfer-encoding: chunked\r\nx", "b"]),
  added("a name that ends in a space", ["content-length ", "0"]),
  added("an empty name", ["", "b"]),
  added("a value that begins with a space", ["x-a", " b"]),
  added("a value that ends in a tab", ["x-a", "b\t"]),
];

export const http2SmugglingCorpus: readonly Http2SmugglingEntry[] = [
  ...sound,
  ...lengths,
  ...connectionFields,
  ...tunnels,
  ...pseudoFields,
  ...texts,
];
