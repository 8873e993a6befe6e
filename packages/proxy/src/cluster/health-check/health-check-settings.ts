// Active health checks of a cluster as its configuration has them (config.core.v3.HealthCheck), with Envoy's defaults
// filled in.
import type { HeaderMap } from "../../http/header-map.ts";
import type { RequestHead } from "../../http/message.ts";
import type { Host } from "../cluster.ts";

export interface HealthCheckSettings {
  readonly timeoutMs: number;
  readonly initialJitterMs: number;
  readonly intervalJitterMs: number;
  readonly intervalJitterPercent: number;
  readonly intervals: HealthCheckIntervals;
  readonly unhealthyThreshold: number;
  readonly healthyThreshold: number;
  readonly reusesConnection: boolean;
  readonly check: HttpCheck | GrpcCheck | TcpCheck;
  /** In the place of the transport's own; undefined = those. */
  readonly alpnProtocols: readonly string[] | undefined;
  /** What chooses the transport in the place of a host's metadata; undefined = those. */
  readonly transportCriteria: Readonly<Record<string, unknown>> | undefined;
  readonly alwaysLogsFailures: boolean;
  readonly alwaysLogsSuccess: boolean;
}

/** From the end of a check to the next one, in milliseconds. */
export interface HealthCheckIntervals {
  readonly healthyMs: number;
  /** After a good check of a host that is not healthy yet. */
  readonly healthyEdgeMs: number;
  readonly unhealthyMs: number;
  /** After a failed check of a host that is still healthy. */
  readonly unhealthyEdgeMs: number;
  /** While no request has been sent to the cluster. */
  readonly noTrafficMs: number;
  readonly noTrafficHealthyMs: number;
}

/** Half-open, as Envoy's. */
export interface StatusRange {
  readonly start: number;
  readonly end: number;
}

/** Changes the headers of a check of `host`. */
export type CheckHeaderChange = (headers: HeaderMap, host: Host, head: RequestHead) => void;

export interface HttpCheck {
  readonly type: "HTTP";
  readonly protocol: "HTTP/1.1" | "HTTP/2";
  /** Empty = the cluster's name. */
  readonly host: string;
  readonly path: string;
  readonly method: string;
  readonly body: Buffer | undefined;
  readonly expectedStatuses: readonly StatusRange[];
  readonly retriableStatuses: readonly StatusRange[];
  /** What the answer's body must hold, in this order. */
  readonly receive: readonly Buffer[];
  /** Of the answer's body, looked at for `receive`. */
  readonly responseBufferBytes: number;
  readonly changeHeaders: CheckHeaderChange | undefined;
  /** What `x-envoy-upstream-healthchecked-cluster` must be; undefined = anything. */
  readonly serviceName: ((name: string) => boolean) | undefined;
}

export interface GrpcCheck {
  readonly type: "GRPC";
  /** Empty = the server as a whole. */
  readonly serviceName: string;
  /** Empty = the cluster's name. */
  readonly authority: string;
  readonly changeHeaders: CheckHeaderChange | undefined;
}

export interface TcpCheck {
  readonly type: "TCP";
  readonly send: Buffer | undefined;
  /** What the host must send, in this order; none = that it can be connected to is enough. */
  readonly receive: readonly Buffer[];
}

/** Whether the parts stand in `bytes` in their order, with anything between them. */
export function holdsInOrder(bytes: Buffer, parts: readonly Buffer[]): boolean {
  let at = 0;
  for (const part of parts) {
    const found = bytes.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return true;
}
