// What of two outcomes must be equal: everything but values that differ from one run to the next on the same proxy, and
// the names and addresses of the two pods. That a masked value is there is still compared.
import { type AccessLogLine, withoutPort } from "./access-log-line.ts";
import type { Call } from "./call.ts";
import type { Outcome, Pod, Proxy } from "./parity-mesh.ts";

/** Everything that one call left behind. */
export interface Trace {
  readonly outcome: Outcome;
  /** Of the access log, in the order of the requests on the connection. */
  readonly lines: readonly AccessLogLine[];
}

export function detailsOf({ expected }: Call, line: AccessLogLine): string {
  return expected.detailsUpTo === undefined ? line.details : line.details.split(expected.detailsUpTo)[0]!;
}

const maskedHeaders = new Set(["date", "x-request-id", "x-envoy-upstream-service-time", "x-envoy-peer-metadata"]);

type Header = readonly [name: string, value: string];

/** Sorted by name alone: the order among headers of one name means something. */
function neutralHeaders(headers: readonly Header[], neutral: (text: string) => string, masked: ReadonlySet<string>) {
  return headers
    .toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([name, value]) => (masked.has(name) ? name : `${name}: ${neutral(value)}`));
}

/**
 * The routes of an inbound side have its Service's name. A request that is refused for what it is meets no route here,
 * while Envoy has looked for the virtual host of some.
 */
function revisionOf({ revision, cluster, route, details }: AccessLogLine): string {
  if (route === "-" && details !== "route_not_found") return "(any)";
  return cluster.startsWith("inbound|") && revision !== "-" ? "(own)" : revision;
}

export function comparable(call: Call, { outcome, lines }: Trace, pod: Pod, proxy: Proxy): unknown {
  const neutral = (text: string): string =>
    text
      .replaceAll(`${pod.address}:`, "pod:")
      .replaceAll(pod.address, "pod")
      .replaceAll(pod.app?.address ?? pod.address, "app")
      .replaceAll(`side-${proxy}`, "side-*")
      .replaceAll(`key-${proxy}`, "key-*");
  const maskedOfEchoes = new Set([...maskedHeaders, "content-length"]);
  return {
    answers: outcome.answers.map((answer, index) => {
      const echo = outcome.echoes[index];
      const headers = neutralHeaders(answer.headers, neutral, echo === undefined ? maskedHeaders : maskedOfEchoes);
      if (echo === undefined) return { ...answer, headers, body: neutral(answer.body) };
      const body = {
        ...echo,
        version: echo.version === proxy ? "*" : echo.version,
        path: neutral(echo.path),
        headers: neutralHeaders(Object.entries(echo.headers), neutral, maskedHeaders),
      };
      return { ...answer, headers, body };
    }),
    lines: lines.map((line, index) => ({
      ...line,
      request: neutral(line.request),
      revision: revisionOf(line),
      requestId: line.requestId === "-" ? "-" : "*",
      details: detailsOf(call, line),
      bytesSent: outcome.echoes[index] === undefined ? line.bytesSent : "(echo)",
      upstreamHost: neutral(line.upstreamHost),
      // A request that breaks at once has a connection only where the pool happened to have an idle one.
      upstreamLocalAddress: line.flags === "DPE" ? "(any)" : neutral(line.upstreamLocalAddress),
      downstreamLocalAddress: neutral(line.downstreamLocalAddress),
      downstreamRemoteAddress: withoutPort(line.downstreamRemoteAddress),
    })),
  };
}

/**
 * Envoy logs the cluster that a refused request would have gone to; Tulle has not looked for it
 * (differences-from-envoy.md). Each inbound side has routes of its own.
 */
export function withoutCluster({ outcome, lines }: Trace): Trace {
  const revision = ({ revision: own }: AccessLogLine): string => (own === "-" ? own : "(own)");
  return { outcome, lines: lines.map((line) => ({ ...line, cluster: "(any)", revision: revision(line) })) };
}
