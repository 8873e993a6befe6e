// What a route says of spans: config.route.v3.Route.tracing and .decorator.
import type { Decorator, Route as RouteMessage, Tracing } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { FractionalPercent } from "@tulle/xds/envoy/type/v3/percent_pb";
import type { CompileScope } from "../fields/compile-scope.ts";
import { fractionOf } from "../fields/matchers/fraction.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { utf8AsLatin1 } from "../http/header-value.ts";
import type { Route, RouteDecorator, RouteTracing } from "../route/route-table.ts";
import { compileCustomTags } from "./custom-tags.ts";
import { alwaysRedacted, type RedactedNames } from "../format/redacted-names.ts";
import { compileSpanFormat } from "./span-format.ts";

export function compileSpanRules(
  { tracing, decorator }: RouteMessage,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): Pick<Route, "tracing" | "decorator"> {
  return {
    tracing: tracing && compileRouteTracing(tracing, scope, place.field("tracing"), problems),
    decorator: decorator && compileDecorator(decorator, place.field("decorator"), problems),
  };
}

function compileRouteTracing(message: Tracing, scope: CompileScope, place: Place, problems: Problems): RouteTracing {
  const shareOf = (percent: FractionalPercent | undefined): number =>
    percent === undefined ? allOfThem : Math.round(fractionOf(percent) * allOfThem);
  return {
    shares: {
      client: shareOf(message.clientSampling),
      random: shareOf(message.randomSampling),
      overall: shareOf(message.overallSampling),
    },
    tags: compileCustomTags(message.customTags, alwaysRedacted, scope, place, problems),
    operation: compileOperation(message.operation, alwaysRedacted, scope, place.field("operation"), problems),
    upstreamOperation: compileOperation(
      message.upstreamOperation,
      alwaysRedacted,
      scope,
      place.field("upstream_operation"),
      problems,
    ),
  };
}

/** A share of requests, in parts of ten thousand. */
const allOfThem = 10_000;

/** Undefined: spans have the names that they have anyway. */
export function compileOperation(
  format: string,
  redactedNames: RedactedNames,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): RouteTracing["operation"] {
  if (format === "") return undefined;
  return compileSpanFormat(format, redactedNames, scope, place, problems);
}

function compileDecorator({ operation, propagate }: Decorator, place: Place, problems: Problems): RouteDecorator {
  if (operation === "") problems.error(place.field("operation"), "value length must be at least 1 characters");
  return { operation: utf8AsLatin1(operation), propagates: propagate ?? true };
}
