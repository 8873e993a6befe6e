// Where Tulle's proxy differs from Envoy on purpose: each row says what either does, and why.
// docs/differences-from-envoy.md has the same list for people.
import { type Call, type Expected, rawRows, requestBytes, type Role } from "./call.ts";

export interface StricterCall {
  readonly call: Call;
  readonly reason: string;
  readonly expected: { readonly tulle: Expected; readonly envoy: Expected };
}

interface Difference {
  readonly name: string;
  readonly reason: string;
  readonly bytes: string;
  readonly tulle: Expected;
  readonly envoy: Expected;
}

const passed: Expected = { status: 200 };
const refused = (details: string): Expected => ({ status: 400, flags: "DPE", details });

/** Where nothing is judged but by routes. */
const hiddenDots: Difference = {
  name: "dots that are escaped, with parameters",
  reason: "some servers resolve what Envoy leaves; routes judge the path that the application reads",
  bytes: requestBytes("gateway", "/v1/a/%2e%2e;/admin"),
  tulle: { status: 200, receivedPath: "/v1/admin" },
  envoy: { status: 403, details: "rbac_access_denied_matched_policy[hidden-dot-segment]" },
};

const heads: readonly Difference[] = [
  {
    name: "bare LF as line ends",
    reason: "RFC 9112 §2.2 lets a recipient take it; two parsers that disagree on it let requests be smuggled",
    bytes: "GET /v1 HTTP/1.1\nhost: %HOST%\nconnection: close\n\n",
    tulle: refused("http1.bare_lf"),
    envoy: passed,
  },
  {
    name: "one bare LF among CRLFs",
    reason: "as above",
    bytes: "GET /v1 HTTP/1.1\r\nhost: %HOST%\nconnection: close\r\n\r\n",
    tulle: refused("http1.bare_lf"),
    envoy: passed,
  },
  {
    name: "obs-fold",
    reason:
      "RFC 9112 §5.2: a server must reject it or make it spaces; joined lines hide headers from the parties between",
    bytes: "GET /v1 HTTP/1.1\r\nhost: %HOST%\r\nx-a: b\r\n c\r\nconnection: close\r\n\r\n",
    tulle: refused("http1.obs_fold"),
    envoy: passed,
  },
  {
    name: "bare CR in a value",
    reason: "RFC 9112 §2.2: a bare CR makes the message invalid, or becomes a space",
    bytes: "GET /v1 HTTP/1.1\r\nhost: %HOST%\r\nx-a: b\rc\r\nconnection: close\r\n\r\n",
    tulle: refused("http1.bare_cr"),
    envoy: passed,
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
    reason: hostReason,
    bytes: twoHosts("other"),
    tulle: refused("http1.multiple_host_headers"),
    envoy: { status: 200, received: { host: "side,other" } },
  },
];
const gatewayHeads: readonly Difference[] = [
  ...heads,
  {
    name: "two Hosts",
    reason: hostReason,
    bytes: twoHosts("other"),
    tulle: refused("http1.multiple_host_headers"),
    envoy: { status: 404, flags: "NR", details: "route_not_found" },
  },
];

function answers(role: Role): Difference[] {
  return [
    {
      name: "early hints",
      reason: "RFC 9110 §15.2: a proxy must forward 1xx answers that it has not asked for itself; Envoy drops 103",
      bytes: requestBytes(role, "/v1~early-hints"),
      tulle: { status: 200, interim: [103] },
      envoy: { status: 200, interim: [] },
    },
    {
      name: "a header of an answer that Connection names",
      reason: "RFC 9110 §7.6.1: a proxy must remove it, in answers as in requests",
      bytes: requestBytes(role, "/v1~hop-by-hop"),
      tulle: { status: 200, headers: { "x-gone": null, "x-kept": "1", "keep-alive": null } },
      envoy: { status: 200, headers: { "x-gone": "1", "x-kept": "1", "keep-alive": null } },
    },
  ];
}

function differences(role: Role, table: readonly Difference[]): StricterCall[] {
  return table.map(({ name, reason, bytes, tulle, envoy }) => ({
    call: rawRows(role, [[name, bytes, tulle]])[0]!,
    reason,
    expected: { tulle, envoy },
  }));
}

export const stricterCalls: readonly StricterCall[] = [
  ...differences("gateway", [...gatewayHeads, hiddenDots, ...answers("gateway")]),
  ...differences("outbound", answers("outbound")),
  ...differences("inbound", [...inboundHeads, ...answers("inbound")]),
];
