// Rows of the overload manager (config.overload.v3) and of its monitors.
import { DownstreamConnectionsConfigSchema } from "@tulle/xds/envoy/extensions/resource_monitors/downstream_connections/v3/downstream_connections_pb";
import { FixedHeapConfigSchema } from "@tulle/xds/envoy/extensions/resource_monitors/fixed_heap/v3/fixed_heap_pb";
import { checkedMessage } from "../fields/checked-message.ts";
import type { FieldRows } from "../fields/field-row.ts";

/** Of the bootstrap, which holds the overload manager. */
export const overloadFields: FieldRows = {
  "envoy.config.overload.v3.OverloadManager": {
    used: "refresh_interval resource_monitors actions",
    told: "loadshed_points",
    harmless: { buffer_factory_config: "buffers are bounded one by one" },
  },
  "envoy.config.overload.v3.ResourceMonitor": { used: "name typed_config" },
  "envoy.config.overload.v3.OverloadAction": {
    used: "name triggers",
    harmless: { typed_config: "of actions without effect here" },
  },
  "envoy.config.overload.v3.Trigger": { used: "name threshold scaled" },
  "envoy.config.overload.v3.ThresholdTrigger": { used: "value" },
  "envoy.config.overload.v3.ScaledTrigger": { used: "scaling_threshold saturation_threshold" },
  "envoy.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig": { used: "max_heap_size_bytes" },
  "envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig": {
    used: "max_active_downstream_connections",
  },
};

export const fixedHeapMessage = checkedMessage(FixedHeapConfigSchema, overloadFields);
export const downstreamConnectionsMessage = checkedMessage(DownstreamConnectionsConfigSchema, overloadFields);
