// Where Tulle's proxy differs from Envoy on purpose: each row says what either does, and why.
// docs/differences-from-envoy.md has the same list for people.
import type { ParityDifference } from "../tools/parity-difference.ts";
import { type Call, type Expected, http2Alone, rawRows, type Role, rows, type Shape, type Versions } from "./call.ts";

export interface StricterCall {
  readonly call: Call;
  readonly expected: ParityDifference<Expected>;
}

/** Bytes of HTTP/1.1, or a request of either version. */
interface Difference extends ParityDifference<Expected> {
  readonly name: string;
  readonly bytes?: string;
  readonly path?: string;
  readonly shape?: Shape;
  readonly versions?: Versions;
}

const passed: Expected = { status: 200 };
const refused = (details: string): Expected => ({ status: 400, flags: "DPE", details });

/** Where nothing is judged but by routes. */
const hiddenDots: Difference = {
  name: "dots that are escaped, with parameters",
  why: "some servers resolve what Envoy leaves; routes judge the path that the application reads",
  path: "/v1/a/%2e%2e;/admin",
  ours: { status: 200, receivedPath: "/v1/admin" },
  envoys: { status: 403, details: "rbac_access_denied_matched_policy[hidden-dot-segment]" },
};

const heads: readonly Difference[] = [
  {
    name: "bare LF as line ends",
    why: "RFC 9112 §2.2 lets a recipient take it; two parsers that disagree on it let requests be smuggled",
    bytes: "GET /v1 HTTP/1.1\nhost: %HOST%\nconnection: close\n\n",
    ours: refused("http1.bare_lf"),
    envoys: passed,
  },
  {
    name: "one bare LF among CRLFs",
    why: "as above",
    bytes: "GET /v1 HTTP/1.1\r\nhost: %HOST%\nconnection: close\r\n\r\n",
    ours: refused("http1.bare_lf"),
    envoys: passed,
  },
  {
    name: "obs-fold",
    why: "RFC 9112 §5.2: a server must reject it or make it spaces; joined lines hide headers from the parties between",
    bytes: "GET /v1 HTTP/1.1\r\nhost: %HOST%\r\nx-a: b\r\n c\r\nconnection: close\r\n\r\n",
    ours: refused("http1.obs_fold"),
    envoys: passed,
  },
  {
    name: "bare CR in a value",
    why: "RFC 9112 §2.2: a bare CR makes the message invalid, or becomes a space",
    bytes: "GET /v1 HTTP/1.1\r\nhost: %HOST%\r\nx-a: b\rc\r\nconnection: close\r\n\r\n",
    ours: refused("http1.bare_cr"),
    envoys: passed,
  },
];

const twoHosts = (second: string): string =>
  `GET /v1 HTTP/1.1\r\nhost: %HOST%\r\nhost: ${second}\r\nconnection: close\r\n\r\n`;
const hostReason = "RFC 9112 §3.2: a server must answer 400 to more than one Host";

/** Envoy joins them to `a,b`, which no virtual host of a gateway has and which the inbound route of a sidecar takes. */
const inboundHeads: readonly Difference[] = [
  ...heads,
  {
    name: "two Hosts",
    why: hostReason,
    bytes: twoHosts("other"),
    ours: refused("http1.multiple_host_headers"),
    envoys: { status: 200, received: { host: "side,other" } },
  },
];
const gatewayHeads: readonly Difference[] = [
  ...heads,
  {
    name: "two Hosts",
    why: hostReason,
    bytes: twoHosts("other"),
    ours: refused("http1.multiple_host_headers"),
    envoys: { status: 404, flags: "NR", details: "route_not_found" },
  },
];

const anyNumber = (count: number): Readonly<Record<string, string>> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, String(index)]));

const http2Heads: readonly Difference[] = [
  {
    name: "too many headers",
    why: "RFC 6585 §5: the client is told what is wrong; Envoy resets the stream",
    shape: { headers: anyNumber(97) },
    versions: http2Alone,
    ours: { status: 431, flags: "DPE", details: "http2.too_many_headers" },
    envoys: { status: 0, flags: "DR", details: "http2.too_many_headers", reset: "INTERNAL_ERROR" },
  },
  {
    name: "an empty authority",
    why: "the client is told what is wrong, and others on its connection did nothing; Envoy closes it",
    shape: { headers: { ":authority": "" } },
    versions: http2Alone,
    ours: { status: 400, details: "missing_host_header" },
    envoys: { status: 0, flags: "DPE", details: "http2.invalid.header.field", reset: "CANCEL" },
  },
];

const answers: readonly Difference[] = [
  {
    name: "early hints",
    why: "RFC 9110 §15.2: a proxy must forward 1xx answers that it has not asked for itself; Envoy drops 103",
    path: "/v1~early-hints",
    ours: { status: 200, interim: [103] },
    envoys: { status: 200, interim: [] },
  },
  {
    name: "a header of an answer that Connection names",
    why: "RFC 9110 §7.6.1: a proxy must remove it, in answers as in requests",
    path: "/v1~hop-by-hop",
    ours: { status: 200, headers: { "x-gone": null, "x-kept": "1", "keep-alive": null } },
    envoys: { status: 200, headers: { "x-gone": "1", "x-kept": "1", "keep-alive": null } },
  },
];

function differences(role: Role, table: readonly Difference[]): StricterCall[] {
  return table.flatMap(({ name, bytes, path = "/v1", shape = {}, versions, ...expected }) => {
    const calls =
      bytes === undefined
        ? rows(role, [[name, path, shape, expected.ours, versions]])
        : rawRows(role, [[name, bytes, expected.ours]]);
    return calls.map((call) => ({ call, expected }));
  });
}

export const stricterCalls: readonly StricterCall[] = [
  ...differences("gateway", [...gatewayHeads, hiddenDots, ...answers, ...http2Heads]),
  ...differences("outbound", [...answers, ...http2Heads]),
  ...differences("inbound", [...inboundHeads, ...answers, ...http2Heads]),
];
