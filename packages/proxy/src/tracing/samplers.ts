// Samplers of the OpenTelemetry tracer: whether a request is written that the connection manager would trace, in place
// of the parent's decision (Envoy: extensions/tracers/opentelemetry/samplers).
import type { TypedExtensionConfig } from "@tulle/xds/envoy/config/core/v3/extension_pb";
import { AlwaysOnSamplerConfigSchema } from "@tulle/xds/envoy/extensions/tracers/opentelemetry/samplers/v3/always_on_sampler_pb";
import { CELSamplerConfigSchema } from "@tulle/xds/envoy/extensions/tracers/opentelemetry/samplers/v3/cel_sampler_pb";
import { ParentBasedSamplerConfigSchema } from "@tulle/xds/envoy/extensions/tracers/opentelemetry/samplers/v3/parent_based_sampler_pb";
import { TraceIdRatioBasedSamplerConfigSchema } from "@tulle/xds/envoy/extensions/tracers/opentelemetry/samplers/v3/trace_id_ratio_based_sampler_pb";
import type { FractionalPercent } from "@tulle/xds/envoy/type/v3/percent_pb";
import { compileTreeExpression } from "../cel/compile-expression.ts";
import { celExpressionFields, treeOfExpression } from "../cel/expression-tree.ts";
import { checkedMessage } from "../fields/checked-message.ts";
import { denominatorOf } from "../fields/matchers/fraction.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { sharedFields } from "../fields/shared-fields.ts";
import { decodeTypedConfig, typeUrlOf, type TypedConfig, unwrapTypedConfig } from "../fields/typed-config.ts";
import type { StreamInfo } from "../http/stream-info.ts";

/** `traceId` has thirty-two digits; `isParentSampled` undefined: the trace begins here. */
export type Sampler = (info: StreamInfo, traceId: string, isParentSampled: boolean | undefined) => boolean;

const parentBasedMessage = checkedMessage(
  ParentBasedSamplerConfigSchema,
  { [ParentBasedSamplerConfigSchema.typeName]: "wrapped_sampler" },
  sharedFields,
);
const ratioMessage = checkedMessage(
  TraceIdRatioBasedSamplerConfigSchema,
  { [TraceIdRatioBasedSamplerConfigSchema.typeName]: "sampling_percentage" },
  sharedFields,
);
const celMessage = checkedMessage(
  CELSamplerConfigSchema,
  { [CELSamplerConfigSchema.typeName]: "expression" },
  celExpressionFields,
);

type CompileSampler = (config: TypedConfig, place: Place, problems: Problems, level: number) => Sampler | undefined;

const samplers: Readonly<Record<string, CompileSampler>> = {
  [typeUrlOf(AlwaysOnSamplerConfigSchema)]: () => () => true,
  [typeUrlOf(ParentBasedSamplerConfigSchema)]: compileParentBased,
  [typeUrlOf(TraceIdRatioBasedSamplerConfigSchema)]: (config, place, problems) => {
    const message = decodeTypedConfig(ratioMessage, config, place, problems);
    return message && ratioSampler(message.samplingPercentage);
  },
  [typeUrlOf(CELSamplerConfigSchema)]: compileCel,
};

/** One sampler within another, and no more: the rest says nothing new. */
const maxLevels = 4;

/** Undefined after an error. */
export function compileSampler(
  config: TypedExtensionConfig | undefined,
  place: Place,
  problems: Problems,
  level = 0,
): Sampler | undefined {
  const typed = unwrapTypedConfig(config?.typedConfig);
  const compile = typed && (Object.hasOwn(samplers, typed.typeUrl) ? samplers[typed.typeUrl] : undefined);
  if (typed === undefined || compile === undefined) {
    problems.error(place, `sampler '${config?.name ?? ""}' is not supported`);
    return undefined;
  }
  if (level >= maxLevels) {
    problems.error(place, `there are more than ${maxLevels} samplers within each other`);
    return undefined;
  }
  return compile(typed, place.field("typed_config"), problems, level);
}

function compileParentBased(config: TypedConfig, place: Place, problems: Problems, level: number): Sampler | undefined {
  const message = decodeTypedConfig(parentBasedMessage, config, place, problems);
  const wrapped =
    message && compileSampler(message.wrappedSampler, place.field("wrapped_sampler"), problems, level + 1);
  return wrapped && ((info, traceId, isParentSampled) => isParentSampled ?? wrapped(info, traceId, undefined));
}

/** The first eight bytes of the id, the lowest of them first, as a remainder: so Envoy draws on common machines. */
function ratioSampler(percent: FractionalPercent | undefined): Sampler {
  const numerator = percent?.numerator ?? 0;
  const denominator = denominatorOf(percent);
  return (_info, traceId) => {
    let remainder = 0;
    for (let at = 14; at >= 0; at -= 2) {
      remainder = (remainder * 256 + Number.parseInt(traceId.slice(at, at + 2), 16)) % denominator;
    }
    return remainder < numerator;
  };
}

function compileCel(config: TypedConfig, place: Place, problems: Problems): Sampler | undefined {
  const message = decodeTypedConfig(celMessage, config, place, problems);
  if (message === undefined) return undefined;
  const tree = treeOfExpression(message.expression);
  const compiled = tree.ok ? compileTreeExpression(tree.tree) : tree;
  if (compiled.ok) return (info) => compiled.isTrue({ info, request: info.request, response: info.response });
  problems.error(place.field("expression"), compiled.reason);
  return undefined;
}
