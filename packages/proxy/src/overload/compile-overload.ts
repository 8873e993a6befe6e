// The bootstrap's overload_manager into settings (config.overload.v3.OverloadManager).
import type { OverloadManager, ScaledTrigger, Trigger } from "@tulle/xds/envoy/config/overload/v3/overload_pb";
import { DownstreamConnectionsConfigSchema } from "@tulle/xds/envoy/extensions/resource_monitors/downstream_connections/v3/downstream_connections_pb";
import { FixedHeapConfigSchema } from "@tulle/xds/envoy/extensions/resource_monitors/fixed_heap/v3/fixed_heap_pb";
import { durationMs } from "../fields/duration.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { decodeTypedConfig, typeUrlOf, unwrapTypedConfig } from "../fields/typed-config.ts";
import type { OverloadAction, OverloadActionName, OverloadSettings, OverloadTrigger } from "./overload-control.ts";
import { downstreamConnectionsMessage, fixedHeapMessage } from "./overload-fields.ts";

const defaultRefreshIntervalMs = 1000;
const actionPrefix = "envoy.overload_actions.";
const known: readonly OverloadActionName[] = [
  "stop_accepting_requests",
  "disable_http_keepalive",
  "stop_accepting_connections",
  "reject_incoming_connections",
];
/** Of Envoy's own allocator and buffers; the collector does this by itself. */
const harmless = new Set(["shrink_heap"]);

interface Resources {
  maxMemoryBytes: number | undefined;
  maxConnections: number | undefined;
  memoryMonitor: string | undefined;
}

export function compileOverload(
  message: OverloadManager | undefined,
  place: Place,
  problems: Problems,
): OverloadSettings {
  const resources: Resources = { maxMemoryBytes: undefined, maxConnections: undefined, memoryMonitor: undefined };
  for (const [index, monitor] of (message?.resourceMonitors ?? []).entries()) {
    const at = place.field("resource_monitors", index);
    const typed = monitor.configType.case === "typedConfig" ? unwrapTypedConfig(monitor.configType.value) : undefined;
    const here = at.field("typed_config");
    if (typed?.typeUrl === typeUrlOf(FixedHeapConfigSchema)) {
      const config = decodeTypedConfig(fixedHeapMessage, typed, here, problems);
      if (config !== undefined && config.maxHeapSizeBytes <= 0n)
        problems.error(here.field("max_heap_size_bytes"), "value must be greater than 0");
      resources.maxMemoryBytes = Number(config?.maxHeapSizeBytes ?? 0n);
      resources.memoryMonitor = monitor.name;
    } else if (typed?.typeUrl === typeUrlOf(DownstreamConnectionsConfigSchema)) {
      const config = decodeTypedConfig(downstreamConnectionsMessage, typed, here, problems);
      if (config !== undefined && config.maxActiveDownstreamConnections <= 0n)
        problems.error(here.field("max_active_downstream_connections"), "value must be greater than 0");
      resources.maxConnections = Number(config?.maxActiveDownstreamConnections ?? 0n);
    } else {
      problems.error(at, `'${monitor.name}' is not supported`);
    }
  }
  const actions: OverloadAction[] = [];
  for (const [index, action] of (message?.actions ?? []).entries()) {
    const at = place.field("actions", index);
    const short = action.name.startsWith(actionPrefix) ? action.name.slice(actionPrefix.length) : action.name;
    const name = known.find((each) => each === short);
    const triggers = action.triggers.flatMap((trigger, number) =>
      compileTrigger(trigger, resources, at.field("triggers", number), problems),
    );
    if (name !== undefined && triggers.length > 0) actions.push({ name, triggers });
    else if (name === undefined && !harmless.has(short)) problems.warning(at, `'${action.name}' has no effect`);
  }
  if ((message?.loadshedPoints.length ?? 0) > 0) problems.warning(place.field("loadshed_points"), "have no effect");
  return {
    refreshIntervalMs: durationMs(message?.refreshInterval, defaultRefreshIntervalMs),
    maxMemoryBytes: resources.maxMemoryBytes,
    maxConnections: resources.maxConnections,
    actions,
  };
}

function compileTrigger(
  trigger: Trigger,
  { memoryMonitor }: Resources,
  place: Place,
  problems: Problems,
): readonly OverloadTrigger[] {
  if (trigger.name !== memoryMonitor) {
    problems.error(place.field("name"), `unknown trigger resource ${trigger.name} for an overload action`);
    return [];
  }
  const { case: kind, value } = trigger.triggerOneof;
  if (kind === "threshold") return [{ type: "threshold", value: value.value }];
  if (kind === "scaled") return scaled(value, place.field("scaled"), problems);
  problems.error(place, "a threshold or a scaled trigger is required");
  return [];
}

function scaled(message: ScaledTrigger, place: Place, problems: Problems): readonly OverloadTrigger[] {
  const { scalingThreshold, saturationThreshold } = message;
  if (scalingThreshold >= saturationThreshold) {
    problems.error(place, "scaling_threshold must be less than saturation_threshold");
  }
  return [{ type: "scaled", scalingFrom: scalingThreshold, saturatedFrom: saturationThreshold }];
}
