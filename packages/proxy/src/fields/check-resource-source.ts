// Where a resource says that its routes or endpoints come from: the aggregated stream, or the server that sent the
// resource.
import type { ConfigSource } from "@tulle/xds/envoy/config/core/v3/config_source_pb";
import { durationMs } from "./duration.ts";
import type { Place, Problems } from "./problems.ts";

export function checkResourceSource(source: ConfigSource | undefined, place: Place, problems: Problems): void {
  const specifier = source?.configSourceSpecifier.case;
  if (specifier === "ads" || specifier === "self") return;
  problems.error(place, specifier === undefined ? "a config source is required" : "only ads and self are supported");
}

const defaultInitialFetchTimeoutMs = 15_000;

/**
 * ConfigSource.initial_fetch_timeout: how long what needs the resource waits before it serves without; 0 = for ever.
 */
export function initialFetchTimeoutMs(source: ConfigSource | undefined): number {
  return durationMs(source?.initialFetchTimeout, defaultInitialFetchTimeoutMs);
}
