// Where Tulle's proxy differs from Envoy on purpose: each row says what either does, and why.
// docs/differences-from-envoy.md has the same list for people.
import type { ParityDifference } from "../tools/parity-difference.ts";
import { type Call, type Expected, rawRows, requestBytes, type Role } from "./call.ts";

export interface StricterCall {
  readonly call: Call;
  readonly expected: ParityDifference<Expected>;
}

interface Difference extends ParityDifference<Expected> {
  readonly name: string;
  readonly bytes: string;
}

const passed: Expected = { status: 200 };
const refused = (details: string): Expected => ({ status: 400, flags: "DPE", details });

/** Where nothing is judged but by routes. */
const hiddenDots: Difference = {
  name: "dots that are escaped, with parameters",
  why: "some servers resolve what Envoy leaves; routes judge the path that the application reads",
  bytes: requestBytes("gateway", "/v1/a/%2e%2e;/admin"),
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

function answers(role: Role): Difference[] {
  return [
    {
      name: "early hints",
      why: "RFC 9110 §15.2: a proxy must forward 1xx answers that it has not asked for itself; Envoy drops 103",
      bytes: requestBytes(role, "/v1~early-hints"),
      ours: { status: 200, interim: [103] },
      envoys: { status: 200, interim: [] },
    },
    {
      name: "a header of an answer that Connection names",
      why: "RFC 9110 §7.6.1: a proxy must remove it, in answers as in requests",
      bytes: requestBytes(role, "/v1~hop-by-hop"),
      ours: { status: 200, headers: { "x-gone": null, "x-kept": "1", "keep-alive": null } },
      envoys: { status: 200, headers: { "x-gone": "1", "x-kept": "1", "keep-alive": null } },
    },
  ];
}

function differences(role: Role, table: readonly Difference[]): StricterCall[] {
  return table.map(({ name, bytes, ...expected }) => ({
    call: rawRows(role, [[name, bytes, expected.ours]])[0]!,
    expected,
  }));
}

export const stricterCalls: readonly StricterCall[] = [
  ...differences("gateway", [...gatewayHeads, hiddenDots, ...answers("gateway")]),
  ...differences("outbound", answers("outbound")),
  ...differences("inbound", [...inboundHeads, ...answers("inbound")]),
];
