// Which requests a log or a mapper of local replies takes (config.accesslog.v3.AccessLogFilter).
import {
  type AccessLogFilter,
  type ComparisonFilter,
  ComparisonFilter_Op as Op,
  type ExtensionFilter,
  type MetadataFilter,
} from "@tulle/xds/envoy/config/accesslog/v3/accesslog_pb";
import { ExpressionFilterSchema } from "@tulle/xds/envoy/extensions/access_loggers/filters/cel/v3/cel_pb";
import { compileLogExpression } from "../cel/compile-expression.ts";
import { accessLogTypes } from "../http/access-log-type.ts";
import { grpcStatuses, impliedGrpcStatus } from "../http/grpc-status.ts";
import type { ResponseHead } from "../http/message.ts";
import { type ResponseFlag, responseFlags } from "../http/response-flags.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { CompileScope } from "./compile-scope.ts";
import { fractionOf } from "./matchers/fraction.ts";
import { compileRequestHeaderMatcher } from "./matchers/header-matcher.ts";
import { compileMetadataMatcher } from "./matchers/metadata-matcher.ts";
import type { Place, Problems } from "./problems.ts";
import { decodeTypedConfig, typeUrlOf, unwrapTypedConfig } from "./typed-config.ts";
import { logExpressionMessage } from "./access-log-fields.ts";

/** `response` is the head that is being sent; `info.responseCode` its status. */
export type LogCondition = (info: StreamInfo, response: ResponseHead | undefined) => boolean;

export function compileLogCondition(
  filter: AccessLogFilter,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): LogCondition {
  const specifier = filter.filterSpecifier;
  switch (specifier.case) {
    case "statusCodeFilter": {
      const compare = comparison(specifier.value.comparison);
      return (info) => compare(info.responseCode);
    }
    case "durationFilter": {
      const compare = comparison(specifier.value.comparison);
      return (info) => compare(info.durationMs);
    }
    case "andFilter":
    case "orFilter": {
      const isAnd = specifier.case === "andFilter";
      const parts = specifier.value.filters.map((part, index) =>
        compileLogCondition(part, scope, place.field(isAnd ? "and_filter" : "or_filter", index), problems),
      );
      return isAnd
        ? (info, response) => parts.every((part) => part(info, response))
        : (info, response) => parts.some((part) => part(info, response));
    }
    case "headerFilter": {
      const { header } = specifier.value;
      if (header === undefined) return () => true;
      const matches = compileRequestHeaderMatcher(header, place.field("header_filter").field("header"), problems);
      return (info) => info.request !== undefined && matches(info.request);
    }
    case "responseFlagFilter": {
      const flags = specifier.value.flags;
      const wanted = flags.reduce((bits, flag) => bits | (responseFlags[flag as ResponseFlag]?.bit ?? 0), 0);
      return (info) => (flags.length === 0 ? info.responseFlags !== 0 : (info.responseFlags & wanted) !== 0);
    }
    case "grpcStatusFilter": {
      const { statuses, exclude } = specifier.value;
      const wanted = new Set<number>(statuses);
      // Asked of any request, gRPC or not, as by Envoy.
      return (info, response) => wanted.has(impliedGrpcStatus(info, response) ?? grpcStatuses.unknown) !== exclude;
    }
    case "runtimeFilter": {
      const percent = specifier.value.percentSampled;
      const share = percent === undefined ? 0 : fractionOf(percent);
      return () => scope.random() < share;
    }
    case "traceableFilter":
      // As Envoy: of all that is traced, what somebody has forced.
      return ({ traceReason }) => traceReason === "service_forced";
    case "logTypeFilter": {
      const { types, exclude } = specifier.value;
      const wanted = new Set<number>(types);
      return ({ accessLogType }) => wanted.has(accessLogTypes[accessLogType]) !== exclude;
    }
    case "notHealthCheckFilter":
      // Nothing marks a request as a health check here, so every request passes.
      return () => true;
    case "metadataFilter":
      return compileMetadataFilter(specifier.value, place.field("metadata_filter"), problems);
    case "extensionFilter":
      return compileExtensionFilter(specifier.value, place.field("extension_filter"), problems);
    default:
      problems.error(place, `the access log filter '${specifier.case ?? "none"}' is not supported`);
      return () => false;
  }
}

function compileMetadataFilter(
  { matcher, matchIfKeyNotFound }: MetadataFilter,
  place: Place,
  problems: Problems,
): LogCondition {
  const whereMissing = matchIfKeyNotFound ?? true;
  if (matcher === undefined) return () => whereMissing;
  const compiled = compileMetadataMatcher(matcher, place.field("matcher"), problems);
  if (compiled === undefined) return () => false;
  return ({ dynamicMetadata }) =>
    compiled.read(dynamicMetadata) === undefined ? whereMissing : compiled.matches(dynamicMetadata);
}

function compileExtensionFilter(filter: ExtensionFilter, place: Place, problems: Problems): LogCondition {
  const config = filter.configType.case === "typedConfig" ? unwrapTypedConfig(filter.configType.value) : undefined;
  if (config?.typeUrl !== typeUrlOf(ExpressionFilterSchema)) {
    const type = config?.typeUrl.replace(/^.*\//, "") ?? "";
    problems.error(place, `Didn't find a registered implementation for '${filter.name}' with type URL: '${type}'`);
    return () => false;
  }
  const at = place.field("typed_config");
  const message = decodeTypedConfig(logExpressionMessage, config, at, problems);
  if (message === undefined) return () => false;
  const expression = compileLogExpression(message.expression);
  if (!expression.ok) {
    problems.error(at.field("expression"), `'${message.expression}': ${expression.reason}`);
    return () => false;
  }
  if (expression.unsupported !== undefined) {
    problems.warning(
      at.field("expression"),
      `'${message.expression}' cannot be evaluated as a whole: ${expression.unsupported}`,
    );
  }
  return (info, response) => expression.isTrue({ info, request: info.request, response });
}

function comparison(filter: ComparisonFilter | undefined): (value: number) => boolean {
  const bound = filter?.value?.defaultValue ?? 0;
  switch (filter?.op) {
    case Op.GE:
      return (value) => value >= bound;
    case Op.LE:
      return (value) => value <= bound;
    case Op.NE:
      return (value) => value !== bound;
    default:
      return (value) => value === bound;
  }
}
