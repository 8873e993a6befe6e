// Istio's metrics of connections: how many were opened and closed, and the bytes that they carried, under the labels of
// `istio_requests_total` that a connection has. A stock Envoy knows no such network filter and would refuse the
// listener, so that the metadata of a filter chain asks for it, which Envoy does not read.
import type { Counter, MetricRegistry } from "@tulle/telemetry";
import type { NetworkFilter, TcpPhase } from "../../../listener/network-filter.ts";
import { connectionFlagsText } from "../../../http/response-flags.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";
import {
  type ConnectionSecurity,
  noSecurity,
  securityOf,
  upstreamSecurityOf,
} from "../../http/istio-stats/connection-security.ts";
import { clusterServiceOf, hostLabels, trafficLabels } from "../../http/istio-stats/traffic-labels.ts";
import { type ServiceLabels, type WorkloadLabels, unknownWorkload } from "../../http/istio-stats/workload-labels.ts";

/** In the metadata of a filter chain. */
export const istioTcpStatsKey = "istio.stats";

export interface IstioTcpStatsOptions {
  readonly metrics: MetricRegistry;
  readonly reporter: "source" | "destination";
  /** The workload that this proxy stands beside. */
  readonly own: WorkloadLabels;
}

interface Handles {
  readonly opened: Counter;
  readonly closed: Counter;
  readonly sentBytes: Counter;
  readonly receivedBytes: Counter;
}

/** Of one connection, counted so far. */
interface Counted {
  sent: number;
  received: number;
}

/** Combinations of labels told apart; one more counts as a caller that nobody knows. */
const maxSeries = 4096;

export class IstioTcpStatsFilter implements NetworkFilter {
  readonly name = istioTcpStatsKey;
  readonly #options: IstioTcpStatsOptions;
  readonly #handles = new Map<string, Handles>();
  readonly #counted = new WeakMap<StreamInfo, Counted>();

  constructor(options: IstioTcpStatsOptions) {
    this.#options = options;
  }

  onNewConnection(): "continue" {
    return "continue";
  }

  onTcpSession(info: StreamInfo, phase: TcpPhase): void {
    const handles = this.#handlesOf(info);
    const before = this.#counted.get(info) ?? { sent: 0, received: 0 };
    handles.sentBytes.add(info.bytesSent - before.sent);
    handles.receivedBytes.add(info.bytesReceived - before.received);
    if (phase === "opened") handles.opened.increment();
    if (phase === "closed") handles.closed.increment();
    else this.#counted.set(info, { sent: info.bytesSent, received: info.bytesReceived });
  }

  #handlesOf(info: StreamInfo): Handles {
    const { reporter } = this.#options;
    const isFull = this.#handles.size >= maxSeries;
    const isSource = reporter === "source";
    const tls = isFull ? undefined : isSource ? info.upstreamTls : info.downstreamTls;
    const security = isSource ? upstreamSecurityOf(tls) : tls === undefined ? noSecurity : securityOf(tls);
    const place = isSource ? info.upstreamHost?.addressText : "";
    const key = [info.responseFlags, info.cluster?.name, place, ...Object.values(security)].join(" ");
    let handles = this.#handles.get(key);
    if (handles === undefined) {
      handles = this.#resolve(info, security);
      this.#handles.set(key, handles);
    }
    return handles;
  }

  #resolve(info: StreamInfo, security: ConnectionSecurity): Handles {
    const { reporter, own, metrics } = this.#options;
    const isSource = reporter === "source";
    const destination = isSource ? hostLabels(info.upstreamHost) : own;
    const service = serviceOf(info, destination);
    const source = isSource ? own : unknownWorkload;
    const labels = trafficLabels(
      { reporter, source, destination, service, security },
      { request_protocol: "tcp", response_flags: connectionFlagsText(info.responseFlags) },
    );
    const counter = (name: string): Counter => metrics.counter({ name: `istio_tcp_${name}_total`, labels });
    return {
      opened: counter("connections_opened"),
      closed: counter("connections_closed"),
      sentBytes: counter("sent_bytes"),
      receivedBytes: counter("received_bytes"),
    };
  }
}

function serviceOf({ cluster }: StreamInfo, destination: WorkloadLabels): ServiceLabels {
  const told = cluster && clusterServiceOf(cluster);
  return told ?? { service: "unknown", name: "unknown", namespace: destination.workload_namespace };
}
