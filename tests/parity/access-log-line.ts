// A line of Istio's access log, taken apart: the fields in which both proxies must agree, and the client's address, by
// which the line of a call is found again.

/** In the order of the format (`%START_TIME%` and what only times say are left out). */
export interface AccessLogLine {
  readonly request: string;
  readonly status: string;
  readonly flags: string;
  readonly details: string;
  readonly terminationDetails: string;
  readonly transportFailure: string;
  readonly bytesReceived: string;
  readonly bytesSent: string;
  readonly forwardedFor: string;
  readonly userAgent: string;
  readonly requestId: string;
  readonly authority: string;
  readonly upstreamHost: string;
  readonly cluster: string;
  /** Without its port, which is the kernel's choice. */
  readonly upstreamLocalAddress: string;
  readonly downstreamLocalAddress: string;
  readonly downstreamRemoteAddress: string;
  readonly requestedServerName: string;
  readonly route: string;
  readonly revision: string;
}

const quoted = '"([^"]*)"';
const plain = String.raw`(\S+)`;
const pattern = new RegExp(
  String.raw`^\[[^\]]+\] ${quoted} ${plain} ${plain} (.*?) ${plain} ${quoted} (\d+) (\d+) \d+ \S+ ` +
    `${quoted} ${quoted} ${quoted} ${quoted} ${quoted} ${plain} ${plain} ${plain} ${plain} ${plain} (.*) ${plain}$`,
);

export const withoutPort = (address: string): string => address.replace(/:\d+$/, "");

/** Envoy cannot leave out single parameters of a query, and logs none of it (docs/differences-from-envoy.md). */
function withoutQuery(request: string): string {
  return request.replace(/\?\S*/, "");
}

/** undefined for a line that is no access-log line: the proxies' own log goes to the same file. */
export function parseAccessLogLine(line: string): AccessLogLine | undefined {
  const fields = pattern.exec(line)?.slice(1);
  if (fields === undefined) return undefined;
  const field = (index: number): string => fields[index]!;
  return {
    request: withoutQuery(field(0)),
    status: field(1),
    flags: field(2),
    details: field(3),
    terminationDetails: field(4),
    transportFailure: field(5),
    bytesReceived: field(6),
    bytesSent: field(7),
    forwardedFor: field(8),
    userAgent: field(9),
    requestId: field(10),
    authority: field(11),
    upstreamHost: field(12),
    cluster: field(13),
    upstreamLocalAddress: withoutPort(field(14)),
    downstreamLocalAddress: field(15),
    downstreamRemoteAddress: field(16),
    requestedServerName: field(17),
    route: field(18),
    revision: field(19),
  };
}
