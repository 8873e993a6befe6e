// Istio's metrics of the connections of a filter chain. A stock Envoy knows no such network filter and would refuse the
// listener, so that the metadata of a filter chain asks for it, which Envoy does not read.
import type { StreamInfo } from "../../../http/stream-info.ts";
import type { NetworkFilter, TcpPhase } from "../../../listener/network-filter.ts";
import { ConnectionMetrics, type ConnectionMetricsOptions } from "../../http/istio-stats/connection-metrics.ts";

/** In the metadata of a filter chain: `stats.PluginConfig`. */
export const istioTcpStatsKey = "istio.stats";

export class IstioTcpStatsFilter implements NetworkFilter {
  readonly name = istioTcpStatsKey;
  readonly #connections: ConnectionMetrics;

  constructor(options: ConnectionMetricsOptions) {
    this.#connections = new ConnectionMetrics(options);
  }

  get reportIntervalMs(): number {
    return this.#connections.reportIntervalMs;
  }

  onNewConnection(): "continue" {
    return "continue";
  }

  onTcpSession(info: StreamInfo, phase: TcpPhase): void {
    this.#connections.count(info, phase);
  }
}
