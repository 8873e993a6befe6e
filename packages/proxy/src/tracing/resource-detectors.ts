// What spans and metrics say of the process that sends them, beside its name: the SDK, and resource detectors
// (Envoy: extensions/tracers/opentelemetry/resource_detectors).
import type { TypedExtensionConfig } from "@tulle/xds/envoy/config/core/v3/extension_pb";
import { EnvironmentResourceDetectorConfigSchema } from "@tulle/xds/envoy/extensions/tracers/opentelemetry/resource_detectors/v3/environment_resource_detector_pb";
import { StaticConfigResourceDetectorConfigSchema } from "@tulle/xds/envoy/extensions/tracers/opentelemetry/resource_detectors/v3/static_config_resource_detector_pb";
import { checkedMessage } from "../fields/checked-message.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { productVersion } from "../runtime/product-version.ts";
import { decodeTypedConfig, typeUrlOf, type TypedConfig, unwrapTypedConfig } from "../fields/typed-config.ts";

type Attributes = readonly (readonly [key: string, value: string])[];
/** The place of OpenTelemetry's own library (semantic conventions, "Telemetry SDK"). */
export const sdkResource: Attributes = [
  ["telemetry.sdk.name", "tulle"],
  ["telemetry.sdk.language", "nodejs"],
  ["telemetry.sdk.version", productVersion],
];

type Detect = (config: TypedConfig, scope: CompileScope, place: Place, problems: Problems) => Attributes;

const staticMessage = checkedMessage(StaticConfigResourceDetectorConfigSchema, {
  [StaticConfigResourceDetectorConfigSchema.typeName]: "attributes",
});

const detectors: Readonly<Record<string, Detect>> = {
  [typeUrlOf(EnvironmentResourceDetectorConfigSchema)]: (_config, { environment }) =>
    resourceOfEnvironment(environment["OTEL_RESOURCE_ATTRIBUTES"]),
  // One without a value is none (Envoy).
  [typeUrlOf(StaticConfigResourceDetectorConfigSchema)]: (config, _scope, place, problems) =>
    Object.entries(decodeTypedConfig(staticMessage, config, place, problems)?.attributes ?? {}).filter(
      ([, value]) => value !== "",
    ),
};

/** In the order of their detectors: the last of a name holds. */
export function detectResource(
  configs: readonly TypedExtensionConfig[],
  scope: CompileScope,
  place: Place,
  problems: Problems,
): Attributes {
  return configs.flatMap((config, index) => {
    const at = place.field("resource_detectors", index);
    const typed = unwrapTypedConfig(config.typedConfig);
    const detect = typed && (Object.hasOwn(detectors, typed.typeUrl) ? detectors[typed.typeUrl] : undefined);
    if (typed !== undefined && detect !== undefined) return detect(typed, scope, at.field("typed_config"), problems);
    problems.error(at, `resource detector '${config.name}' is not supported`);
    return [];
  });
}

/** `key=value,key=value`, values percent-encoded (OpenTelemetry: Resource SDK, "Specifying resource information via an
 *  environment variable"). What is not sound is left out as a whole. */
function resourceOfEnvironment(text: string | undefined): Attributes {
  const pairs = (text ?? "").split(",").map((pair) => pair.trim());
  try {
    return pairs.flatMap((pair) => {
      const [, key, value] = /^([^=]+)=(.*)$/.exec(pair) ?? [];
      return key === undefined ? [] : [[key.trim(), decodeURIComponent(value!.trim())] as const];
    });
  } catch {
    return [];
  }
}
