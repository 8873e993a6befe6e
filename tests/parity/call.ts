// What a row of the parity tables says, and how the requests of each version are made of it.
import { type Http2Request, type HttpVersion, versions } from "../tools/http2-client.ts";

/** Which listener of which pod takes the call. */
export type Role = "gateway" | "outbound" | "inbound";
export const roles: readonly Role[] = ["gateway", "outbound", "inbound"];

export interface Expected {
  /** Of the last answer. */
  readonly status: number;
  /** Of the answers before it on the same connection. */
  readonly earlierStatuses?: readonly number[];
  /** `%RESPONSE_FLAGS%`; default `-`. */
  readonly flags?: string;
  /** `%RESPONSE_CODE_DETAILS%`; default `via_upstream`. */
  readonly details?: string;
  /** Only this far, and without it, the details are compared: what follows names the parts that a proxy is made of. */
  readonly detailsUpTo?: string;
  /** `%ROUTE_NAME%`. */
  readonly route?: string;
  /** The version that the back end reports. */
  readonly version?: string;
  /** Tries that the back end saw (`x-envoy-attempt-count`). */
  readonly attempts?: number;
  readonly bodyIncludes?: string;
  /** 1xx answers before the last answer. */
  readonly interim?: readonly number[];
  readonly trailers?: readonly (readonly [string, string])[];
  readonly truncated?: boolean;
  /** The code that ended the stream before its end; over HTTP/2. */
  readonly reset?: string;
  /** Headers of the answer, by lower-case name; null: must be absent. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** What the back end received, by lower-case name; null: must be absent. */
  readonly received?: Readonly<Record<string, string | null>>;
  /** The path that the back end received. */
  readonly receivedPath?: string;
}

interface CallOfAnyVersion {
  readonly name: string;
  readonly role: Role;
  /** Other than the role's. */
  readonly port?: number;
  readonly expected: Expected;
}

export interface Http1Call extends CallOfAnyVersion {
  readonly version: "HTTP/1.1";
  /** One for each request in `bytes`: it decides whether an answer has a body. */
  readonly methods: readonly string[];
  /** With the names in percent signs that `ParityMesh.makeCall` knows. */
  readonly bytes: string;
  /** Sent after the first complete head of an answer. */
  readonly afterHead?: string | undefined;
}

export interface Http2Call extends CallOfAnyVersion {
  readonly version: "HTTP/2";
  /** One after the other on one connection, with the same names as `bytes`. */
  readonly requests: readonly Http2Request[];
}

export type Call = Http1Call | Http2Call;

export interface Shape {
  readonly method?: string;
  readonly host?: string;
  /** Several values are several fields. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Several parts are sent without their length, as chunks or frames; so is one part with trailers. */
  readonly body?: string | readonly string[];
  readonly trailers?: Readonly<Record<string, string>>;
}

export const defaultHosts: Readonly<Record<Role, string>> = {
  gateway: "a.wild.example.com",
  outbound: "echo",
  inbound: "side",
};

/** A well-formed request; `connection: close` unless the row says otherwise. */
export function requestBytes(role: Role, path: string, shape: Shape = {}): string {
  const { body, trailers } = shape;
  const isChunked = Array.isArray(body);
  const headers: Record<string, string | readonly string[]> = {
    host: shape.host ?? defaultHosts[role],
    "user-agent": "parity",
    connection: "close",
    ...shape.headers,
    ...(isChunked ? { "transfer-encoding": "chunked" } : {}),
    ...(typeof body === "string" ? { "content-length": String(body.length) } : {}),
  };
  const chunks = isChunked ? (body as readonly string[]) : [];
  const text = isChunked
    ? [...chunks.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`), "0\r\n", fieldLines(trailers), "\r\n"]
    : [body ?? ""];
  return `${shape.method ?? "GET"} ${path} HTTP/1.1\r\n${fieldLines(headers)}\r\n${text.join("")}`;
}

function fieldLines(fields: Shape["headers"] = {}): string {
  return Object.entries(fields)
    .flatMap(([name, values]) => [values].flat().map((value) => `${name}: ${value}\r\n`))
    .join("");
}

/** The same request over HTTP/2; a CONNECT has neither scheme nor path (RFC 9113 §8.5). */
export function http2Request(role: Role, path: string, shape: Shape = {}): Http2Request {
  const { method = "GET", host = defaultHosts[role], body, trailers } = shape;
  const target =
    method === "CONNECT" ? { ":authority": path } : { ":scheme": "http", ":authority": host, ":path": path };
  const given = Object.entries(shape.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]);
  const headers: Http2Request["headers"] = {
    ":method": method,
    ...target,
    "user-agent": "parity",
    ...(Object.fromEntries(given) as Http2Request["headers"]),
    ...(typeof body === "string" ? { "content-length": String(body.length) } : {}),
  };
  const parts = typeof body === "string" ? [body] : (body ?? []);
  return { headers, body: parts, ...(trailers === undefined ? {} : { trailers }) };
}

/** Where a row depends on what client or application speak. */
export interface Versions {
  /** Of the client; both, where what it says has a form in both. */
  readonly versions?: readonly HttpVersion[];
  /** Why a client of HTTP/2 cannot say it. */
  readonly why?: string;
  /** What a client of HTTP/2 gets in another way. */
  readonly http2?: Partial<Expected>;
  /** What an application of HTTP/2 leads to in another way, or why it has no part in the row. */
  readonly toHttp2?: Partial<Expected> | string;
}

/** A row with one well-formed request, for clients of both versions. */
export type Row = readonly [
  name: string,
  path: string,
  shape: Shape,
  expected: Expected,
  versions?: Versions | undefined,
];

export const http1Alone = (why: string): Versions => ({ versions: ["HTTP/1.1"], why });
export const http2Alone: Versions = { versions: ["HTTP/2"] };

export function rows(role: Role, table: readonly Row[]): Call[] {
  return table.flatMap(([name, path, shape, expected, more = {}]) =>
    (more.versions ?? versions).map((version): Call => {
      const row = { name: `${role}: ${name}, ${version}`, role };
      if (version === "HTTP/2") {
        // What has begun and cannot be ended is reset.
        const cut = expected.truncated === true ? { reset: "INTERNAL_ERROR" } : {};
        const told = { ...expected, ...cut, ...more.http2 };
        return { ...row, version, requests: [http2Request(role, path, shape)], expected: told };
      }
      return { ...row, version, methods: [shape.method ?? "GET"], bytes: requestBytes(role, path, shape), expected };
    }),
  );
}

/** Where the application speaks HTTP/2. */
const http2Hosts: Readonly<Partial<Record<Role, Pick<Shape, "host"> & Pick<Call, "port">>>> = {
  outbound: { host: "echo:82" },
  inbound: { port: 3001 },
};

/** The same rows to an application of HTTP/2, but for those that it has no part in. */
export function rowsToHttp2(role: Role, table: readonly Row[]): Call[] {
  const { host, port } = http2Hosts[role]!;
  const there = table.flatMap(([name, path, shape, expected, more = {}]): Row[] => {
    const { toHttp2 = {} } = more;
    if (typeof toHttp2 === "string") return [];
    const placed = host === undefined ? shape : { ...shape, host };
    return [[`${name}, to HTTP/2`, path, placed, { ...expected, ...toHttp2 }, more]];
  });
  return rows(role, there).map((call) => (port === undefined ? call : { ...call, port }));
}

/** Why rows are left out over HTTP/2, and how many for each reason. */
export function reasonsForHttp1(table: readonly Row[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const [, , , , { why, toHttp2 } = {}] of table) {
    const reason = why ?? toHttp2;
    if (typeof reason === "string") counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return counts;
}

/** A row of HTTP/1.1 alone, whose bytes are written out; `%HOST%` becomes the role's host. */
export type RawRow = readonly [
  name: string,
  bytes: string,
  expected: Expected,
  more?: { readonly methods?: readonly string[]; readonly afterHead?: string },
];

export function rawRows(role: Role, table: readonly RawRow[]): Http1Call[] {
  const place = (text: string): string => text.replaceAll("%HOST%", defaultHosts[role]);
  return table.map(([name, bytes, expected, more]) => ({
    name: `${role}: ${name}`,
    role,
    version: "HTTP/1.1",
    methods: more?.methods ?? ["GET"],
    bytes: place(bytes),
    afterHead: more?.afterHead === undefined ? undefined : place(more.afterHead),
    expected,
  }));
}
