// The control plane's metrics, under the names that Istio's dashboards know where they mean the same.
import type { Counter, Gauge, MetricRegistry } from "@tulle/telemetry";

export interface ControlPlaneMetrics {
  readonly connections: Gauge;
  readonly services: Gauge;
  readonly virtualServices: Gauge;
  pushes(type: string): Counter;
  rejects(type: string): Counter;
  /** Streams and calls that a limit, or what their client is, has ended. */
  turnedAway(status: string): Counter;
}

export function controlPlaneMetrics(registry: MetricRegistry, version: string): ControlPlaneMetrics {
  registry.gauge({ name: "pilot_info", help: "Version of the control plane.", labels: { version } }).set(1);
  registry
    .gauge({ name: "istio_build", help: "Build of the component.", labels: { component: "pilot", tag: version } })
    .set(1);
  return {
    connections: registry.gauge({ name: "pilot_xds", help: "Proxies connected over xDS.", labels: { version } }),
    services: registry.gauge({ name: "pilot_services", help: "Services known." }),
    virtualServices: registry.gauge({ name: "pilot_virt_services", help: "VirtualServices known." }),
    pushes: (type) =>
      registry.counter({
        name: "pilot_xds_pushes",
        help: "xDS responses sent, by type.",
        labels: { type: type.toLowerCase() },
      }),
    rejects: (type) =>
      registry.counter({
        name: `pilot_xds_${type.toLowerCase()}_reject`,
        help: `Rejected ${type} responses.`,
      }),
    turnedAway: (status) =>
      registry.counter({
        name: "tulle_xds_turned_away_total",
        help: "xDS streams and certificate requests that were turned away, by gRPC status.",
        labels: { status },
      }),
  };
}
