// typed_per_filter_config of a route, virtual host or weighted cluster: each filter's own overrides, by its name.
import { fromBinary } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { FilterConfigSchema } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import { filterOfRouteType } from "../filters/http/table.ts";
import { enablementKey } from "../filters/http/enablement-key.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { checkFields } from "../fields/check-fields.ts";
import { routeFilterConfigMessage } from "./route-fields.ts";
import { type TypedConfig, typeUrlOf, unwrapTypedConfig } from "../fields/typed-config.ts";

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
    const value = compileOne(name, configs[name]!, above.get(name), place.key("", name), problems);
    // A filter that is off by itself is on where a route says anything of it.
    merged.set(enablementKey(name), true);
    if (value !== undefined) merged.set(name, value);
  }
  return merged;
}

interface Unwrapped {
  readonly isOptional: boolean;
  readonly isDisabled: boolean;
  /** An empty configuration is no override: it only enables the filter. */
  readonly isEmpty: boolean;
  readonly config: TypedConfig | undefined;
}

/** @throws where the bytes are no FilterConfig or TypedStruct */
function unwrap(any: Any, place: Place, problems: Problems): Unwrapped {
  if (any.typeUrl !== typeUrlOf(FilterConfigSchema)) {
    return { isOptional: false, isDisabled: false, isEmpty: false, config: unwrapTypedConfig(any) };
  }
  const message = fromBinary(FilterConfigSchema, any.value);
  checkFields(routeFilterConfigMessage, message, place, problems);
  const { isOptional, disabled: isDisabled, config } = message;
  return { isOptional, isDisabled, isEmpty: config?.typeUrl === "", config: unwrapTypedConfig(config) };
}

function compileOne(name: string, any: Any, above: unknown, place: Place, problems: Problems): unknown {
  let unwrapped: Unwrapped;
  try {
    unwrapped = unwrap(any, place, problems);
  } catch (error) {
    problems.error(place, `cannot be decoded: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
  const { config, isOptional, isDisabled, isEmpty } = unwrapped;
  if (isDisabled) problems.error(place.field("disabled"), "this field is not supported");
  else if (isEmpty) return undefined;
  if (config === undefined) {
    problems.error(place, `Empty route/virtual host per filter configuration for ${name} filter`);
    return undefined;
  }
  const filter = filterOfRouteType(config.typeUrl);
  if (filter?.compileRoute !== undefined) return filter.compileRoute(config, place, problems, above);
  const message = `Didn't find a registered implementation for type: '${config.typeUrl.replace(/^.*\//, "")}'`;
  if (isOptional) problems.warning(place, message);
  else problems.error(place, message);
  return undefined;
}
