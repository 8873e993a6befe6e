// Calls that are only of interest in numbers: how they spread over the versions of a service, and how they are counted.
import type { HttpVersion } from "../tools/http2-client.ts";
import { type Call, http2Request, requestBytes, type Role } from "./call.ts";

/** Many requests on one connection, pipelined or stream by stream. */
export function manyRequests(role: Role, path: string, count: number, version: HttpVersion): Call {
  const row = { name: `${role}: ${count} × ${path}, ${version}`, role, expected: { status: 200 } };
  if (version === "HTTP/2") {
    return {
      ...row,
      version,
      requests: Array.from({ length: count }, () => http2Request(role, path)),
    };
  }
  const kept = requestBytes(role, path, { headers: { connection: "keep-alive" } });
  return {
    ...row,
    version,
    methods: Array.from({ length: count }, () => "GET"),
    bytes: kept.repeat(count - 1) + requestBytes(role, path),
  };
}

export interface Spread {
  readonly name: string;
  readonly role: Role;
  readonly path: string;
  /** Of v1, in [0, 1]. */
  readonly share: number;
  /** At once. The balancer prefers hosts with fewer requests: it draws evenly only while none has any. */
  readonly connections: number;
}

export const spreads: readonly Spread[] = (["gateway", "outbound"] as const).flatMap((role) => [
  { name: `${role}: without a subset, both versions`, role, path: "/spread", share: 0.5, connections: 1 },
  { name: `${role}: weights 30 and 70`, role, path: "/shares", share: 0.3, connections: 4 },
  { name: `${role}: one subset`, role, path: "/v1", share: 1, connections: 4 },
]);

/**
 * How far a count of `total` draws may be from its mean: five standard deviations of the binomial distribution, which
 * one run in two million exceeds.
 */
export function allowedDeviation(total: number, share: number): number {
  return 5 * Math.sqrt(total * share * (1 - share));
}

export interface Counted {
  readonly role: Role;
  readonly path: string;
  readonly count: number;
  readonly status: number;
  /** The labels of `istio_requests_total` that these calls, tries of one call together, must raise by `count`. */
  readonly labels: Readonly<Record<string, string>>;
}

const echoService = "echo.parity.svc.cluster.local";

export const countedCalls: readonly Counted[] = [
  {
    role: "outbound",
    path: "/v1",
    count: 5,
    status: 200,
    labels: {
      reporter: "source",
      source_workload: "side-tulle",
      destination_service: echoService,
      destination_version: "v1",
      response_code: "200",
      response_flags: "-",
    },
  },
  {
    role: "outbound",
    path: "/retried~status?code=500",
    count: 2,
    status: 500,
    labels: { reporter: "source", destination_service: echoService, response_code: "500", response_flags: "URX" },
  },
  {
    role: "outbound",
    path: "/no-endpoints",
    count: 3,
    status: 503,
    labels: {
      reporter: "source",
      destination_service: "nobody.parity.svc.cluster.local",
      response_code: "503",
      response_flags: "UH",
    },
  },
  {
    role: "gateway",
    path: "/exact",
    count: 4,
    status: 200,
    labels: {
      reporter: "source",
      source_workload: "gateway-tulle",
      destination_service: echoService,
      destination_version: "v2",
      response_code: "200",
      response_flags: "-",
    },
  },
  {
    role: "inbound",
    path: "/status?code=404",
    count: 6,
    status: 404,
    labels: {
      reporter: "destination",
      destination_workload: "side-tulle",
      destination_service: "side-tulle.parity.svc.cluster.local",
      response_code: "404",
      response_flags: "-",
    },
  },
];

const sample = /^istio_requests_total\{(.*)\} (\d+)/gm;

/** The sum of all `istio_requests_total` that carry the labels, of a page in Prometheus' text format. */
export function requestsTotal(page: string, labels: Readonly<Record<string, string>>): number {
  let total = 0;
  for (const [, text, value] of page.matchAll(sample)) {
    const carries = Object.entries(labels).every(([name, wanted]) => `,${text}`.includes(`,${name}="${wanted}"`));
    if (carries) total += Number(value);
  }
  return total;
}
