// A virtual host of a route table (config.route.v3.VirtualHost): when it is compiled, and how it answers.
import {
  type Route,
  type VirtualHost,
  VirtualHost_TlsRequirementType as TlsRequirement,
} from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { RequestHead } from "../http/message.ts";
import type { Route as RouteOfTable, RouteMatch } from "../route/route-table.ts";
import { checkFields } from "../fields/check-fields.ts";
import { type PerFilterConfigs, compilePerFilterConfigs } from "./compile-per-filter-config.ts";
import { httpsLocation } from "./compile-redirect.ts";
import { compileRetryPolicy } from "./compile-retry-policy.ts";
import type { MatchContext } from "../fields/compile-route-match.ts";
import { compileHeaderLevel, type HeaderLevel } from "./compile-header-level.ts";
import { type CompiledRoute, type RouteParent, compileRoute, noMetadata } from "./compile-route.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import { type Sliced, runAtOnce } from "@tulle/timing";
import { type KnownShapes, maxRoutesCompiledLate } from "./known-shapes.ts";
import { Place, Problems, problemsText } from "../fields/problems.ts";
import { RouteList, maxWalkedRoutes } from "./route-list.ts";
import type { EncodedParts, OpenVirtualHost, VirtualHostSource } from "./route-source.ts";
import { routeMessage, virtualHostMessage } from "./route-fields.ts";

/**
 * What every virtual host of a configuration shares. Not its message: that is views of a response, which hosts outlive.
 */
export interface TableBuild {
  readonly mostSpecificWins: boolean;
  readonly maxDirectResponseBodyBytes: number;
  readonly scope: CompileScope;
  readonly problems: Problems;
  readonly level: HeaderLevel;
  readonly perFilterConfigs: PerFilterConfigs;
  readonly clusterExists: ((name: string) => boolean) | undefined;
  /** Undefined: nothing is known by its shape, because clusters are to exist too. */
  readonly known: KnownShapes | undefined;
}

type RouteMetadata = RouteOfTable["metadata"];

/** How a virtual host answers. */
class HostRoutes {
  readonly metadata: RouteMetadata;
  readonly #routes: RouteList;
  readonly #httpsRedirect: RouteMatch | undefined;
  readonly #otherwise: RouteMatch | undefined;

  constructor(
    metadata: RouteMetadata,
    routes: readonly CompiledRoute[],
    httpsRedirect: RouteMatch | undefined,
    otherwise?: RouteMatch,
  ) {
    this.metadata = metadata;
    this.#routes = new RouteList(routes);
    this.#httpsRedirect = httpsRedirect;
    this.#otherwise = otherwise;
  }

  match(request: RequestHead, context: MatchContext): RouteMatch | undefined {
    if (this.#httpsRedirect !== undefined && request.scheme !== "https") return this.#httpsRedirect;
    return this.#routes.find(request, context)?.select(request, context) ?? this.#otherwise;
  }
}

/** What is known of a virtual host once it was found good. */
interface GoodHost {
  readonly name: string;
  readonly domains: readonly string[];
  /** Clusters that its routes may choose. */
  readonly clusterNames: ReadonlySet<string>;
  /** Undefined: they are compiled for the first request. */
  readonly routes: HostRoutes | undefined;
  /** A body is what a file held at that moment: compiled once more it may come to something else. */
  readonly readsFiles: boolean;
  /** Of each version of the table all are told. */
  readonly hasWarnings: boolean;
}

/**
 * One that came encoded is found good when it comes, and compiled for the first request that asks for it: a mesh's
 * proxy is told of a thousand services and calls five. All of them compiled and kept made five collections of 12 ms in
 * each push of ten thousand routes.
 */
export class CompiledVirtualHost {
  readonly name: string;
  readonly domains: readonly string[];
  readonly clusterNames: readonly string[];
  readonly #build: TableBuild;
  readonly #isCompiledAnew: boolean;
  #source: VirtualHostSource;
  #routes: HostRoutes | undefined;

  constructor(good: GoodHost, source: VirtualHostSource, build: TableBuild) {
    this.name = good.name;
    this.domains = good.domains;
    this.clusterNames = [...good.clusterNames];
    this.#build = build;
    this.#isCompiledAnew = good.readsFiles || good.hasWarnings;
    this.#source = source;
    this.#routes = good.routes;
  }

  match(request: RequestHead, context: MatchContext): RouteMatch | undefined {
    this.#routes ??= compileLate(this.name, this.#source, this.#build);
    return this.#routes.match(request, context);
  }

  /** Of a host that has just been asked for a match. */
  get metadata(): RouteMetadata {
    return this.#routes?.metadata ?? noMetadata;
  }

  /**
   * Whether `source` is what this was compiled from; from now on this one's bytes are held, and not those of a message
   * of long ago.
   */
  comesAgainAs(source: VirtualHostSource): boolean {
    if (this.#isCompiledAnew || !isSame(this.#source.encoded, source.encoded)) return false;
    this.#source = source;
    return true;
  }
}

export function isSame(before: Uint8Array | undefined, now: Uint8Array | undefined): boolean {
  return before !== undefined && now !== undefined && Buffer.compare(before, now) === 0;
}

/**
 * Within a request, so nothing may be thrown here: it would end the process and all that it serves. What was good when
 * it came is good now; should it be otherwise, requests for this virtual host alone get 503, and the log says why.
 */
function compileLate(name: string, source: VirtualHostSource, build: TableBuild): HostRoutes {
  const problems = new Problems();
  let reason: string;
  try {
    const { routes } = runAtOnce(buildVirtualHost(source.open(), { ...build, problems }, Place.root));
    if (!problems.hasErrors) return routes;
    reason = problemsText(problems.list);
  } catch (error) {
    reason = error instanceof Error ? error.message : String(error);
  }
  const log = build.scope.logging.logger("config");
  log.error("a virtual host was good when it came and cannot be compiled: it answers 503", {
    name,
    reason,
  });
  return new HostRoutes(noMetadata, [], undefined, refusal(name));
}

/** Of answers that are the virtual host's own. */
function ownRoute(virtualHostMetadata: RouteMetadata): RouteOfTable {
  return { name: "", metadata: noMetadata, virtualHostMetadata, perFilterConfig: new Map() };
}

function metadataOf({ metadata }: VirtualHost): RouteMetadata {
  return metadata?.filterMetadata ?? noMetadata;
}

function refusal(virtualHostName: string): RouteMatch {
  return {
    route: ownRoute(noMetadata),
    virtualHostName,
    action: { type: "direct", status: 503, body: Buffer.alloc(0), finalizeResponse: () => undefined },
  };
}

export function* compileVirtualHost(
  source: VirtualHostSource,
  build: TableBuild,
  place: Place,
): Sliced<CompiledVirtualHost> {
  const { known, problems } = build;
  const good = source.encoded === undefined ? undefined : known?.virtualHost(source.encoded);
  if (good !== undefined) {
    return new CompiledVirtualHost(
      { ...good, routes: undefined, readsFiles: false, hasWarnings: false },
      source,
      build,
    );
  }
  const host = source.open();
  if (host.encoded !== undefined && known !== undefined && host.routeCount <= maxRoutesCompiledLate) {
    const own = { ...build, problems: new Problems() };
    const proven = yield* proveVirtualHost(host, host.encoded, known, own, place);
    if (!proven.readsFiles) {
      problems.add(own.problems);
      return new CompiledVirtualHost(proven, source, build);
    }
  }
  return new CompiledVirtualHost(yield* buildVirtualHost(host, build, place), source, build);
}

/** Compiles what is of no known shape, and keeps nothing of it: that proves that all of the virtual host is good. */
function* proveVirtualHost(
  host: OpenVirtualHost,
  encoded: EncodedParts,
  known: KnownShapes,
  build: TableBuild,
  place: Place,
): Sliced<GoodHost> {
  const { problems } = build;
  const message = host.message();
  const parent = compileParent(message, host.routeCount, build, place);
  httpsRedirectOf(message, place, problems);
  if (problems.list.length === 0) known.learnVirtualHost(encoded.rest, message);
  const clusterNames = new Set<string>();
  for (const [index, bytes] of encoded.routes.entries()) {
    if (known.addClusters(bytes, clusterNames)) continue;
    parent.clusterNames.clear();
    const problemCount = problems.list.length;
    const route = host.route(index);
    compileRouteAt(route, index, parent, place);
    for (const name of parent.clusterNames) clusterNames.add(name);
    if (parent.readsFiles) break;
    if (problems.list.length === problemCount) known.learnRoute(bytes, route, parent.clusterNames);
    yield undefined;
  }
  const { name, domains } = message;
  const { readsFiles } = parent;
  return { name, domains, clusterNames, routes: undefined, readsFiles, hasWarnings: problems.list.length > 0 };
}

function* buildVirtualHost(
  host: OpenVirtualHost,
  build: TableBuild,
  place: Place,
): Sliced<GoodHost & { readonly routes: HostRoutes }> {
  const { problems } = build;
  const problemCount = problems.list.length;
  const message = host.message();
  const parent = compileParent(message, host.routeCount, build, place);
  const compiledRoutes: CompiledRoute[] = [];
  while (compiledRoutes.length < host.routeCount) {
    const index = compiledRoutes.length;
    compiledRoutes.push(compileRouteAt(host.route(index), index, parent, place));
    yield undefined;
  }
  const routes = new HostRoutes(parent.virtualHostMetadata, compiledRoutes, httpsRedirectOf(message, place, problems));
  const { name, domains } = message;
  const { clusterNames, readsFiles } = parent;
  return { name, domains, clusterNames, routes, readsFiles, hasWarnings: problems.list.length > problemCount };
}

function compileRouteAt(route: Route, index: number, parent: RouteParent, place: Place): CompiledRoute {
  const at = place.field("routes", index);
  checkFields(routeMessage, route, at, parent.problems);
  return compileRoute(route, parent, at);
}

function compileParent(host: VirtualHost, routeCount: number, build: TableBuild, place: Place): RouteParent {
  const { scope, problems } = build;
  if (host.name === "") problems.error(place.field("name"), "value length must be at least 1 characters");
  checkFields(virtualHostMessage, host, place, problems);
  return {
    scope,
    problems,
    virtualHostName: host.name,
    virtualHostMetadata: metadataOf(host),
    levels: [compileHeaderLevel(host, scope, place, problems), build.level],
    mostSpecificWins: build.mostSpecificWins,
    perFilterConfigs: compilePerFilterConfigs(
      host.typedPerFilterConfig,
      build.perFilterConfigs,
      place.field("typed_per_filter_config"),
      problems,
    ),
    retryPolicy:
      host.retryPolicy === undefined
        ? undefined
        : compileRetryPolicy(host.retryPolicy, place.field("retry_policy"), problems),
    includeRequestAttemptCount: host.includeRequestAttemptCount,
    includeAttemptCountInResponse: host.includeAttemptCountInResponse,
    maxDirectResponseBodyBytes: build.maxDirectResponseBodyBytes,
    clusterExists: build.clusterExists,
    clusterNames: new Set(),
    needsPathIndex: routeCount > maxWalkedRoutes,
    readsFiles: false,
  };
}

function httpsRedirectOf(host: VirtualHost, place: Place, problems: Problems): RouteMatch | undefined {
  if (host.requireTls === TlsRequirement.NONE) return undefined;
  if (host.requireTls === TlsRequirement.EXTERNAL_ONLY) {
    problems.error(place.field("require_tls"), "EXTERNAL_ONLY is not supported");
    return undefined;
  }
  return {
    route: ownRoute(metadataOf(host)),
    virtualHostName: host.name,
    action: { type: "redirect", status: 301, location: httpsLocation, finalizeResponse: () => {} },
  };
}
