// What a row of the failure table is, and the words that rows share.
import { waitFor } from "../../../../../tests/tools/processes.ts";
import type { BadBackEnd } from "./bad-back-end.ts";
import type { RawClient } from "./failure-stage.ts";

export interface FailureRow {
  readonly name: string;
  /** A listener of the bootstrap. */
  readonly listener?: string;
  /** Bytes that are sent; the connection has to end by itself then. Or what the client does. */
  readonly play: string | ((client: RawClient, backEnd: BadBackEnd) => Promise<void>);
  /** `<status> <flags> <details>` of each request, in order. */
  readonly lines: readonly string[];
  /** Rise by one for each time that they stand here. */
  readonly counters?: readonly string[];
  readonly envoy?: { readonly why: string; readonly lines?: readonly string[]; readonly counters?: readonly string[] };
}

export const close = "Connection: close\r\n";
export const get = (path: string, fields = close): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
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
