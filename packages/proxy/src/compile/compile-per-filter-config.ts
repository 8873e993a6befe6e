// typed_per_filter_config of a route, virtual host or weighted cluster: each filter's own overrides, by its name.
import { fromBinary } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { FilterConfigSchema } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import { filterOfRouteType } from "../filters/table.ts";
import { enablementKey } from "../filters/where-routes-enable.ts";
import type { Place, Problems } from "./problems.ts";
import { typeUrlOf, unwrapTypedConfig } from "./typed-config.ts";

export type PerFilterConfigs = ReadonlyMap<string, unknown>;

/** The level's own configurations over those of the levels above it. */
export function compilePerFilterConfigs(
  configs: Readonly<Record<string, Any>>,
  above: PerFilterConfigs,
  place: Place,
  problems: Problems,
): PerFilterConfigs {
  const names = Object.keys(configs);
  if (names.length === 0) return above;
  const merged = new Map(above);
  for (const name of names) {
    const value = compileOne(name, configs[name]!, place.key("", name), problems);
    // A filter that is off by itself is on where a route says anything of it.
    merged.set(enablementKey(name), true);
    if (value !== undefined) merged.set(name, value);
  }
  return merged;
}

function compileOne(name: string, any: Any, place: Place, problems: Problems): unknown {
  let inner: Any | undefined = any;
  let isOptional = false;
  if (any.typeUrl === typeUrlOf(FilterConfigSchema)) {
    const wrapper = fromBinary(FilterConfigSchema, any.value);
    if (wrapper.disabled) problems.error(place.field("disabled"), "this field is not supported");
    inner = wrapper.config;
    // An empty configuration is no override: it only enables the filter.
    if (inner?.typeUrl === "" && !wrapper.disabled) return undefined;
    isOptional = wrapper.isOptional;
  }
  const config = unwrapTypedConfig(inner);
  if (config === undefined) {
    problems.error(place, `Empty route/virtual host per filter configuration for ${name} filter`);
    return undefined;
  }
  const filter = filterOfRouteType(config.typeUrl);
  if (filter?.compileRoute !== undefined) return filter.compileRoute(config, place, problems);
  const message = `Didn't find a registered implementation for type: '${config.typeUrl.replace(/^.*\//, "")}'`;
  if (isOptional) problems.warning(place, message);
  else problems.error(place, message);
  return undefined;
}
