// One route: its condition and what it does with a request (config.route.v3.Route). Everything a request needs is made
// here once; only cluster_header makes an action for a request, and keeps it.
import { readFileSync } from "node:fs";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { type DataSource, RoutingPriority } from "@tulle/xds/envoy/config/core/v3/base_pb";
import {
  type Route as RouteMessage,
  type RouteAction as RouteActionMessage,
  RouteAction_ClusterNotFoundResponseCode as NotFoundCode,
  type WeightedCluster,
  type WeightedCluster_ClusterWeight as ClusterWeight,
} from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { GrpcTimeoutRule } from "../http/grpc-timeout.ts";
import type { RequestHead } from "../http/message.ts";
import type { ForwardAction, RetryPolicy, Route, RouteAction, RouteMatch, UpgradeRule } from "../route/route-table.ts";
import { compileHeaderLevel, type HeaderLevel, orderedChanges, responseFinalizer } from "./compile-header-level.ts";
import { type PerFilterConfigs, compilePerFilterConfigs } from "./compile-per-filter-config.ts";
import { compileRedirect } from "./compile-redirect.ts";
import { compileRetryPolicy } from "./compile-retry-policy.ts";
import { type Rewrite, compileHostRewrite, compilePathRewrite } from "./compile-rewrite.ts";
import {
  type PathIndex,
  type RandomDraw,
  type RouteCondition,
  compileRouteMatch,
  pathIndexOf,
} from "../fields/compile-route-match.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import { durationMs } from "../fields/duration.ts";
import { requestHeader } from "../http/read-header.ts";
import { compileSpanRules } from "../tracing/compile-route-tracing.ts";
import type { Place, Problems } from "../fields/problems.ts";

/** Envoy's default of RouteAction.timeout. */
const defaultTimeoutMs = 15_000;
/** RouteConfiguration.max_direct_response_body_size_bytes. */
export const defaultMaxDirectResponseBodyBytes = 4096;
/** Actions that a route with cluster_header keeps, one a cluster. */
const maxHeaderClusters = 1024;

/** What the levels above a route hand down to it. */
export interface RouteParent {
  readonly scope: CompileScope;
  readonly problems: Problems;
  readonly virtualHostName: string;
  readonly virtualHostMetadata: Route["virtualHostMetadata"];
  /** Most specific first: virtual host, then route configuration. */
  readonly levels: readonly HeaderLevel[];
  readonly mostSpecificWins: boolean;
  readonly perFilterConfigs: PerFilterConfigs;
  readonly retryPolicy: RetryPolicy | undefined;
  readonly includeRequestAttemptCount: boolean;
  readonly includeAttemptCountInResponse: boolean;
  readonly maxDirectResponseBodyBytes: number;
  /** Says for each cluster that a route names whether it exists; undefined = not asked (validate_clusters). */
  readonly clusterExists: ((name: string) => boolean) | undefined;
  /** Collects the clusters that the routes may choose. */
  readonly clusterNames: Set<string>;
  /** The list is long enough to be looked up by path. */
  readonly needsPathIndex: boolean;
  /** Set when what is compiled depends on a file's content at this moment. */
  readsFiles: boolean;
}

/** Of a route that does not always lead to the same. */
type Select = (request: RequestHead, draw: RandomDraw) => RouteMatch;

export class CompiledRoute {
  readonly matches: RouteCondition;
  readonly pathIndex: PathIndex | undefined;
  readonly #chosen: RouteMatch | Select;

  constructor(matches: RouteCondition, pathIndex: PathIndex | undefined, chosen: RouteMatch | Select) {
    this.matches = matches;
    this.pathIndex = pathIndex;
    this.#chosen = chosen;
  }

  select(request: RequestHead, draw: RandomDraw): RouteMatch {
    const chosen = this.#chosen;
    return typeof chosen === "function" ? chosen(request, draw) : chosen;
  }
}

export const noMetadata: Route["metadata"] = {};

export function compileRoute(message: RouteMessage, parent: RouteParent, place: Place): CompiledRoute {
  const { scope, problems } = parent;
  if (message.match === undefined) problems.error(place.field("match"), "value is required");
  const match =
    message.match === undefined
      ? { matches: () => false, prefixLength: undefined }
      : compileRouteMatch(message.match, place.field("match"), problems);
  const levels = [compileHeaderLevel(message, scope, place, problems), ...parent.levels];
  const perFilterConfig = compilePerFilterConfigs(
    message.typedPerFilterConfig,
    parent.perFilterConfigs,
    place.field("typed_per_filter_config"),
    problems,
  );
  const route: Route = {
    name: message.name,
    metadata: message.metadata?.filterMetadata ?? noMetadata,
    ...compileSpanRules(message, scope, place, problems),
    virtualHostMetadata: parent.virtualHostMetadata,
    perFilterConfig,
  };
  const build: RouteBuild = { parent, route, levels, prefixLength: match.prefixLength };
  const pathIndex = parent.needsPathIndex && message.match !== undefined ? pathIndexOf(message.match) : undefined;
  return new CompiledRoute(match.matches, pathIndex, compileAction(message, build, place));
}

interface RouteBuild {
  readonly parent: RouteParent;
  readonly route: Route;
  readonly levels: readonly HeaderLevel[];
  readonly prefixLength: number | undefined;
}

function always(build: RouteBuild, action: RouteAction): RouteMatch {
  return { route: build.route, virtualHostName: build.parent.virtualHostName, action };
}

function compileAction(message: RouteMessage, build: RouteBuild, place: Place): RouteMatch | Select {
  const { problems } = build.parent;
  const finalizeResponse = responseFinalizer(orderedChanges(build.levels, "response", build.parent.mostSpecificWins));
  const action = message.action;
  switch (action.case) {
    case "route":
      return compileForward(action.value, build, place.field("route"));
    case "redirect": {
      const redirect = compileRedirect(action.value, build.prefixLength, place.field("redirect"), problems);
      return always(build, { type: "redirect", ...redirect, finalizeResponse });
    }
    case "directResponse": {
      const { status } = action.value;
      const at = place.field("direct_response");
      if (status < 200 || status >= 600) problems.error(at.field("status"), "value must be inside range [200, 600)");
      const body = readDirectBody(action.value.body, build.parent, at.field("body"));
      return always(build, { type: "direct", status, body, finalizeResponse });
    }
    case "filterAction":
    case "nonForwardingAction":
      problems.error(
        place.field(action.case === "filterAction" ? "filter_action" : "non_forwarding_action"),
        "this field is not supported",
      );
      break;
    case undefined:
      problems.error(place, "an action is required: route, redirect or direct_response");
      break;
  }
  return always(build, { type: "direct", status: 500, body: new Uint8Array(), finalizeResponse });
}

function readDirectBody(source: DataSource | undefined, parent: RouteParent, place: Place): Uint8Array {
  const { maxDirectResponseBodyBytes: maxBytes, problems } = parent;
  const specifier = source?.specifier;
  let body: Uint8Array = new Uint8Array();
  switch (specifier?.case) {
    case "inlineString":
      body = new TextEncoder().encode(specifier.value);
      break;
    case "inlineBytes":
      // A copy: the message is a view of the response that it came with.
      body = new Uint8Array(specifier.value);
      break;
    case "filename":
      parent.readsFiles = true;
      try {
        body = readFileSync(specifier.value);
      } catch (error) {
        problems.error(place.field("filename"), error instanceof Error ? error.message : String(error));
      }
      break;
    case "environmentVariable":
      problems.error(place.field("environment_variable"), "this field is not supported");
      break;
    case undefined:
      break;
  }
  if (body.length > maxBytes) {
    problems.error(place, `response body size is ${body.length} bytes; maximum is ${maxBytes}`);
  }
  return body;
}

/** What all clusters of a forwarding route share. */
interface ForwardParts {
  readonly build: RouteBuild;
  readonly message: RouteActionMessage;
  readonly retryPolicy: RetryPolicy | undefined;
  readonly pathRewrite: Rewrite | undefined;
  readonly upgrades: ReadonlyMap<string, UpgradeRule> | undefined;
  readonly place: Place;
}

const notFoundStatuses: Readonly<Record<number, number>> = {
  [NotFoundCode.SERVICE_UNAVAILABLE]: 503,
  [NotFoundCode.NOT_FOUND]: 404,
  [NotFoundCode.INTERNAL_SERVER_ERROR]: 500,
};

function compileForward(message: RouteActionMessage, build: RouteBuild, place: Place): RouteMatch | Select {
  const { parent } = build;
  const { problems } = parent;
  if (message.priority === RoutingPriority.HIGH) problems.error(place.field("priority"), "HIGH is not supported");
  const parts: ForwardParts = {
    build,
    message,
    retryPolicy:
      message.retryPolicy === undefined
        ? parent.retryPolicy
        : compileRetryPolicy(message.retryPolicy, place.field("retry_policy"), problems),
    pathRewrite: compilePathRewrite(message, build.prefixLength, place, problems),
    upgrades: compileUpgrades(message, place, problems),
    place,
  };
  const specifier = message.clusterSpecifier;
  switch (specifier.case) {
    case "cluster":
      return always(build, forwardTo(parts, named(parts, specifier.value, place.field("cluster")), undefined, place));
    case "clusterHeader":
      return selectByHeader(parts, specifier.value, undefined, place);
    case "weightedClusters":
      return selectByWeight(parts, specifier.value, place.field("weighted_clusters"));
    case "clusterSpecifierPlugin":
    case "inlineClusterSpecifierPlugin":
      problems.error(place.field("cluster_specifier_plugin"), "this field is not supported");
      break;
    case undefined:
      problems.error(place, "a cluster specifier is required");
      break;
  }
  return always(build, forwardTo(parts, "", undefined, place));
}

/** Undefined = the connection manager's holds. */
function ownStreamDurationMs(message: RouteActionMessage): number | undefined {
  const duration = message.maxStreamDuration?.maxStreamDuration;
  return duration === undefined ? undefined : durationMs(duration, 0);
}

function grpcRule(max: Duration | undefined, offset: Duration | undefined): GrpcTimeoutRule | undefined {
  return max && { maxMs: durationMs(max, 0), offsetMs: durationMs(offset, 0) };
}

/** Notes and checks a cluster's name. */
function named(parts: ForwardParts, name: string, place: Place): string {
  const { parent } = parts.build;
  if (name === "") parent.problems.error(place, "value length must be at least 1 characters");
  else if (parent.clusterExists?.(name) === false) parent.problems.error(place, `route: unknown cluster '${name}'`);
  parent.clusterNames.add(name);
  return name;
}

interface WeightLevel {
  readonly level: HeaderLevel;
  readonly hostRewrite: string;
  readonly route: Route;
}

function forwardTo(
  parts: ForwardParts,
  clusterName: string,
  weight: WeightLevel | undefined,
  place: Place,
  clusterSlot = parts.build.parent.scope.clusterSlot(clusterName),
): ForwardAction {
  const { build, message } = parts;
  const { parent } = build;
  const levels = weight === undefined ? build.levels : [weight.level, ...build.levels];
  const requestChanges = orderedChanges(levels, "request", parent.mostSpecificWins);
  const responseChanges = orderedChanges(levels, "response", parent.mostSpecificWins);
  const hostRewrite = compileHostRewrite(message, weight?.hostRewrite ?? "", place, parent.problems);
  const { pathRewrite } = parts;
  return {
    type: "forward",
    clusterSlot,
    // Envoy: a route with max_stream_duration uses "new timeouts" and never looks at its `timeout`.
    timeoutMs: message.maxStreamDuration === undefined ? durationMs(message.timeout, defaultTimeoutMs) : 0,
    idleTimeoutMs: message.idleTimeout === undefined ? undefined : durationMs(message.idleTimeout, 0),
    maxStreamDurationMs: ownStreamDurationMs(message),
    grpcDuration: grpcRule(
      message.maxStreamDuration?.grpcTimeoutHeaderMax,
      message.maxStreamDuration?.grpcTimeoutHeaderOffset,
    ),
    grpcTimeout:
      message.maxStreamDuration === undefined ? grpcRule(message.maxGrpcTimeout, message.grpcTimeoutOffset) : undefined,
    tellsDuration: message.maxStreamDuration !== undefined,
    retryPolicy: parts.retryPolicy,
    clusterNotFoundStatus: notFoundStatuses[message.clusterNotFoundResponseCode] ?? 503,
    includeRequestAttemptCount: parent.includeRequestAttemptCount,
    includeAttemptCountInResponse: parent.includeAttemptCountInResponse,
    finalizeRequest: (request, info) => {
      for (const change of requestChanges) change(request.headers, info, request, undefined);
      hostRewrite?.(request);
      pathRewrite?.(request);
    },
    finalizeResponse: responseFinalizer(responseChanges),
    responseIsUntouched: responseChanges.length === 0,
    autoHostRewrite:
      message.hostRewriteSpecifier.case === "autoHostRewrite" && message.hostRewriteSpecifier.value.value,
    appendForwardedHost: message.appendXForwardedHost,
    upgrades: parts.upgrades,
  };
}

function selectByHeader(
  parts: ForwardParts,
  headerName: string,
  weight: WeightLevel | undefined,
  place: Place,
): Select {
  const { build } = parts;
  const { scope, virtualHostName } = build.parent;
  const read = requestHeader(headerName);
  const route = weight?.route ?? build.route;
  const kept = new Map<string, RouteMatch>();
  // A request names the cluster: only clusters that exist may leave something behind.
  const unknown: RouteMatch = { route, virtualHostName, action: forwardTo(parts, "", weight, place) };
  return (request) => {
    const name = read(request) ?? "";
    const slot = scope.knownClusterSlot(name);
    if (slot === undefined) return unknown;
    const known = kept.get(name);
    if (known?.action.type === "forward" && known.action.clusterSlot === slot) return known;
    const match: RouteMatch = { route, virtualHostName, action: forwardTo(parts, name, weight, place, slot) };
    if (kept.size < maxHeaderClusters || kept.has(name)) kept.set(name, match);
    return match;
  };
}

function selectByWeight(parts: ForwardParts, message: WeightedCluster, place: Place): Select {
  const { problems } = parts.build.parent;
  const choices: (RouteMatch | Select)[] = [];
  const upTo: number[] = [];
  let total = 0;
  for (const [index, weight] of message.clusters.entries()) {
    total += weight.weight ?? 0;
    upTo.push(total);
    choices.push(compileWeighted(parts, weight, place.field("clusters", index)));
  }
  if (message.clusters.length === 0) problems.error(place.field("clusters"), "value must contain at least 1 item(s)");
  else if (total === 0) problems.error(place, "Sum of weights in the weighted_cluster must be greater than 0.");
  else if (total > 0xffffffff) problems.error(place, "The sum of weights of all weighted clusters exceeds 4294967295");
  const chance = message.randomValueSpecifier;
  const readHeader = chance.case === "headerName" ? requestHeader(chance.value) : undefined;
  return (request, draw) => {
    const given = readHeader?.(request);
    const chosen = given !== undefined && /^\d{1,15}$/.test(given) ? Number(given) % total : draw.value() * total;
    let index = 0;
    while (index < upTo.length - 1 && chosen >= upTo[index]!) index += 1;
    const choice = choices[index]!;
    return typeof choice === "function" ? choice(request, draw) : choice;
  };
}

function compileWeighted(parts: ForwardParts, weight: ClusterWeight, place: Place): RouteMatch | Select {
  const { build } = parts;
  const { parent } = build;
  const perFilterConfig = compilePerFilterConfigs(
    weight.typedPerFilterConfig,
    build.route.perFilterConfig,
    place.field("typed_per_filter_config"),
    parent.problems,
  );
  const rewrite = weight.hostRewriteSpecifier;
  const level: WeightLevel = {
    level: compileHeaderLevel(weight, parent.scope, place, parent.problems),
    hostRewrite: rewrite.case === "hostRewriteLiteral" ? rewrite.value : "",
    route: { ...build.route, perFilterConfig },
  };
  if (weight.name !== "" && weight.clusterHeader !== "") {
    parent.problems.error(place, "Only one of name or cluster_header can be specified");
  }
  if (weight.clusterHeader !== "") return selectByHeader(parts, weight.clusterHeader, level, parts.place);
  const name = named(parts, weight.name, place.field("name"));
  return always({ ...build, route: level.route }, forwardTo(parts, name, level, parts.place));
}

function compileUpgrades(
  message: RouteActionMessage,
  place: Place,
  problems: Problems,
): ReadonlyMap<string, UpgradeRule> | undefined {
  if (message.upgradeConfigs.length === 0) return undefined;
  const upgrades = new Map<string, UpgradeRule>();
  for (const [index, config] of message.upgradeConfigs.entries()) {
    const type = config.upgradeType.toLowerCase();
    const at = place.field("upgrade_configs", index);
    if (upgrades.has(type)) problems.error(at, `Duplicate upgrade ${config.upgradeType}`);
    const terminatesConnect = config.connectConfig !== undefined;
    if (terminatesConnect && type !== "connect") {
      problems.error(at, `Non-CONNECT upgrade type ${config.upgradeType} has ConnectConfig`);
    }
    upgrades.set(type, { enabled: config.enabled ?? true, terminatesConnect });
  }
  return upgrades;
}
