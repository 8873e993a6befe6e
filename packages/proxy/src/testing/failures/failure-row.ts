// What a row of the failure table is, and the words that rows share.
import type { HttpVersion } from "../../../../../tests/tools/http2-client.ts";
import { waitFor } from "../../../../../tests/tools/processes.ts";
import type { BadBackEnd } from "./bad-back-end.ts";
import type { FailureClient, FailureRequest } from "./failure-client.ts";

/** What tells of a failure. */
export interface Signs {
  /** `<status> <flags> <details>` of each request, in order. */
  readonly lines: readonly string[];
  /** Rise by one for each time that they stand here. */
  readonly counters?: readonly string[];
}

export interface FailureRow extends Signs {
  readonly name: string;
  /** A listener of the bootstrap. */
  readonly listener?: string;
  /**
   * A request, by each version, or bytes, which are of HTTP/1.1 alone (what HTTP/2 can say wrongly is in
   * `rfc9113-server.test.ts`): the answer has to end by itself then. Or what the client does.
   */
  readonly play: FailureRequest | string | ((client: FailureClient, backEnd: BadBackEnd) => Promise<void>);
  readonly envoy?: { readonly why: string } & Partial<Signs>;
  /** Where a client of HTTP/2 is told otherwise, or why it cannot ask this. */
  readonly http2?: ({ readonly envoy?: Partial<Signs> } & Partial<Signs>) | string;
}

export function versionsOf({ play, http2 }: FailureRow): readonly HttpVersion[] {
  return typeof play === "string" || typeof http2 === "string" ? ["HTTP/1.1"] : ["HTTP/1.1", "HTTP/2"];
}

export function expectedOf(row: FailureRow, isEnvoy: boolean, version: HttpVersion): Signs {
  const other = version === "HTTP/2" && typeof row.http2 === "object" ? row.http2 : {};
  return isEnvoy ? { ...row, ...other, ...row.envoy, ...other.envoy } : { ...row, ...other };
}

/** Of rows that ask for an upgrade. */
export const upgrade = "over HTTP/2 it is asked for by CONNECT (tests/parity/websocket-gateway.long.test.ts)";

export const close = "Connection: close\r\n";
export const get = (path: string, fields = close): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
/** To a route that lets WebSockets pass, and whose time for a request is shorter than its idle time. */
export const websocket = (path: string): string =>
  get(`/websocket${path}`, "Connection: upgrade\r\nUpgrade: websocket\r\nsec-websocket-key: x\r\n");
export const post = (path: string, fields: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n${body}`;
export const resetBefore = (reason: string): string => `upstream_reset_before_response_started{${reason}}`;
export const resetAfter = (reason: string): string => `upstream_reset_after_response_started{${reason}}`;
export const main = (stat: string): string => `http.main.downstream_${stat}`;
export const app = (stat: string): string => `cluster.app.upstream_${stat}`;

/** Why Envoy says otherwise, in several rows. */
export const lateFlag = "it sets the flag when the line has been written";

export function seenClosed(backEnd: BadBackEnd, target: string): Promise<boolean> {
  return waitFor(() => backEnd.closed.has(target), {
    timeoutMs: 60_000,
    what: `the end of the connection that ${target} came on`,
  });
}
