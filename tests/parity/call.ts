// What a row of the parity tables says, and how its bytes are made.

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
  /** Headers of the answer, by lower-case name; null: must be absent. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** What the back end received, by lower-case name; null: must be absent. */
  readonly received?: Readonly<Record<string, string | null>>;
  /** The path that the back end received. */
  readonly receivedPath?: string;
}

export interface Call {
  readonly name: string;
  readonly role: Role;
  /** One for each request in `bytes`: it decides whether an answer has a body. */
  readonly methods: readonly string[];
  /**
   * `%KEY%` becomes a name for this call on this proxy, `%FROM%` the client's address, `%ECHO_V1%` and `%ECHO_V2%`
   * addresses of back ends.
   */
  readonly bytes: string;
  /** Sent after the first complete head of an answer. */
  readonly afterHead?: string | undefined;
  readonly expected: Expected;
}

export interface Shape {
  readonly method?: string;
  readonly host?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export const defaultHosts: Readonly<Record<Role, string>> = {
  gateway: "a.wild.example.com",
  outbound: "echo",
  inbound: "side",
};

/** A well-formed request; `connection: close` unless the row says otherwise. */
export function requestBytes(role: Role, path: string, shape: Shape = {}): string {
  const headers: Record<string, string> = {
    host: shape.host ?? defaultHosts[role],
    "user-agent": "parity",
    connection: "close",
    ...shape.headers,
  };
  if (shape.body !== undefined && headers["transfer-encoding"] === undefined) {
    headers["content-length"] = String(shape.body.length);
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${shape.method ?? "GET"} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${shape.body ?? ""}`;
}

/** A row with one well-formed request. */
export type Row = readonly [name: string, path: string, shape: Shape, expected: Expected];

export function rows(role: Role, table: readonly Row[]): Call[] {
  return table.map(([name, path, shape, expected]) => ({
    name: `${role}: ${name}`,
    role,
    methods: [shape.method ?? "GET"],
    bytes: requestBytes(role, path, shape),
    expected,
  }));
}

/** A row whose bytes are written out; `%HOST%` becomes the role's host. */
export type RawRow = readonly [
  name: string,
  bytes: string,
  expected: Expected,
  more?: { readonly methods?: readonly string[]; readonly afterHead?: string },
];

export function rawRows(role: Role, table: readonly RawRow[]): Call[] {
  const place = (text: string): string => text.replaceAll("%HOST%", defaultHosts[role]);
  return table.map(([name, bytes, expected, more]) => ({
    name: `${role}: ${name}`,
    role,
    methods: more?.methods ?? ["GET"],
    bytes: place(bytes),
    afterHead: more?.afterHead === undefined ? undefined : place(more.afterHead),
    expected,
  }));
}
