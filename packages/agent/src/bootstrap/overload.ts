// When a proxy gives requests and connections up, because of the memory that it was given or of connections beyond
// counting (Envoy: OverloadManager).
import { typeUrl } from "./type-url.ts";

// Envoy asks for a limit, and warns without one.
const maxDownstreamConnections = 50_000;

const memoryMonitor = "envoy.resource_monitors.fixed_heap";

/**
 * By the share of its memory that a proxy uses: first what costs clients least. Connections end with their answer, then
 * requests are answered 503, then connections are refused.
 */
const memoryActions = [
  { name: "envoy.overload_actions.shrink_heap", threshold: 0.9 },
  { name: "envoy.overload_actions.disable_http_keepalive", threshold: 0.92 },
  { name: "envoy.overload_actions.stop_accepting_requests", threshold: 0.95 },
  { name: "envoy.overload_actions.reject_incoming_connections", threshold: 0.98 },
] as const;

/** `memoryLimitBytes` is the proxy's; 0 = its memory is not looked at. */
export function overloadManager(memoryLimitBytes: number): object {
  const connections = {
    name: "envoy.resource_monitors.global_downstream_max_connections",
    typed_config: {
      "@type": typeUrl("resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig"),
      max_active_downstream_connections: String(maxDownstreamConnections),
    },
  };
  if (memoryLimitBytes === 0) return { resource_monitors: [connections] };
  const memory = {
    name: memoryMonitor,
    typed_config: {
      "@type": typeUrl("resource_monitors.fixed_heap.v3.FixedHeapConfig"),
      max_heap_size_bytes: String(memoryLimitBytes),
    },
  };
  return {
    refresh_interval: "0.25s",
    resource_monitors: [connections, memory],
    actions: memoryActions.map(({ name, threshold }) => ({
      name,
      triggers: [{ name: memoryMonitor, threshold: { value: threshold } }],
    })),
  };
}
