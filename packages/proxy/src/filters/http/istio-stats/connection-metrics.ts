// Istio's metrics of connections: how many were opened and closed, and the bytes that they carried, under the labels of
// `istio_requests_total` that a connection has.
import type { Counter, MetricRegistry } from "@tulle/telemetry";
import type { CelSubject } from "../../../cel/attributes.ts";
import type { TcpPhase } from "../../../listener/network-filter.ts";
import { connectionFlagsText } from "../../../http/response-flags.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";
import { type ConnectionSecurity, noSecurity, securityOf, upstreamSecurityOf } from "./connection-security.ts";
import { type CustomHandle, type MetricOverrides, recordCustom } from "./metric-overrides.ts";
import type { Rotation } from "./rotation.ts";
import { clusterServiceOf, hostLabels, type Reporter, trafficLabels } from "./traffic-labels.ts";
import { type ServiceLabels, type WorkloadLabels, unknownWorkload } from "./workload-labels.ts";

export interface ConnectionMetricsOptions {
  readonly metrics: MetricRegistry;
  readonly reporter: Reporter;
  /** The workload that this proxy stands beside. */
  readonly own: WorkloadLabels;
  readonly reportIntervalMs: number;
  readonly overrides: MetricOverrides | undefined;
  readonly rotation: Rotation;
}

/** Undefined are metrics that are not kept. */
interface Handles {
  readonly opened: Counter | undefined;
  readonly closed: Counter | undefined;
  readonly sentBytes: Counter | undefined;
  readonly receivedBytes: Counter | undefined;
  readonly custom: readonly CustomHandle[];
}

/** Of one connection, counted so far. */
interface Counted {
  sent: number;
  received: number;
}

/** Combinations told apart; the registry folds what is new beyond it. */
const maxKept = 4096;

export class ConnectionMetrics {
  readonly #options: ConnectionMetricsOptions;
  #handles = new Map<string, Handles>();
  #generation: number;
  readonly #counted = new WeakMap<StreamInfo, Counted>();

  constructor(options: ConnectionMetricsOptions) {
    this.#options = options;
    this.#generation = options.rotation.generation;
  }

  get reportIntervalMs(): number {
    return this.#options.reportIntervalMs;
  }

  /** `info` is of one connection, which is opened once and closed once. */
  count(info: StreamInfo, phase: TcpPhase): void {
    const handles = this.#handlesOf(info);
    const before = this.#counted.get(info) ?? { sent: 0, received: 0 };
    handles.sentBytes?.add(info.bytesSent - before.sent);
    handles.receivedBytes?.add(info.bytesReceived - before.received);
    if (phase === "opened") handles.opened?.increment();
    if (phase !== "closed") {
      this.#counted.set(info, { sent: info.bytesSent, received: info.bytesReceived });
      return;
    }
    handles.closed?.increment();
    recordCustom(handles.custom, subjectOf(info));
  }

  #handlesOf(info: StreamInfo): Handles {
    const { reporter, rotation, overrides } = this.#options;
    if (this.#generation !== rotation.generation) {
      this.#generation = rotation.generation;
      this.#handles = new Map();
      overrides?.forgetValues();
    }
    const isSource = reporter === "source";
    const tls = isSource ? info.upstreamTls : info.downstreamTls;
    const security = isSource ? upstreamSecurityOf(tls) : tls === undefined ? noSecurity : securityOf(tls);
    const place = reporter === "destination" ? "" : info.upstreamHost?.addressText;
    const values = overrides?.keyOf(subjectOf(info)) ?? "";
    const key = [info.responseFlags, info.cluster?.name, place, ...Object.values(security)].join(" ") + values;
    let handles = this.#handles.get(key);
    if (handles === undefined) {
      handles = this.#resolve(info, security);
      if (this.#handles.size < maxKept) this.#handles.set(key, handles);
    }
    return handles;
  }

  #resolve(info: StreamInfo, security: ConnectionSecurity): Handles {
    const { reporter, own, metrics, overrides } = this.#options;
    const isSource = reporter === "source";
    const destination = reporter === "destination" ? own : hostLabels(info.upstreamHost);
    const service = serviceOf(info, destination);
    const source = isSource ? own : unknownWorkload;
    const standard = trafficLabels(
      { reporter, source, destination, service, security },
      { request_protocol: "tcp", response_flags: connectionFlagsText(info.responseFlags) },
    );
    const subject = subjectOf(info);
    const counter = (name: string): Counter | undefined => {
      const labels = overrides === undefined ? standard : overrides.labels(name, standard, subject);
      const isAskerFull = overrides?.isFull === true;
      return labels && metrics.counter({ name: `istio_${name}`, labels, isLabelledByRequests: true, isAskerFull });
    };
    return {
      opened: counter("tcp_connections_opened_total"),
      closed: counter("tcp_connections_closed_total"),
      sentBytes: counter("tcp_sent_bytes_total"),
      receivedBytes: counter("tcp_received_bytes_total"),
      custom: overrides?.custom(metrics, subject) ?? [],
    };
  }
}

function subjectOf(info: StreamInfo): CelSubject {
  return { info, request: undefined, response: undefined };
}

function serviceOf({ cluster }: StreamInfo, destination: WorkloadLabels): ServiceLabels {
  const told = cluster && clusterServiceOf(cluster);
  return told ?? { service: "unknown", name: "unknown", namespace: destination.workload_namespace };
}
