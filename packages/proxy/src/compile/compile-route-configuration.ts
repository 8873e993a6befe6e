// A route configuration into the route table that requests are matched with (config.route.v3.RouteConfiguration).
import type { RouteConfiguration } from "@tulle/xds/envoy/config/route/v3/route_pb";
import {
  type VirtualHost,
  VirtualHost_TlsRequirementType as TlsRequirement,
} from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { RequestHead } from "../http/message.ts";
import type { RouteMatch, RouteTable } from "../route/route-table.ts";
import { VirtualHostIndex } from "../route/virtual-host-index.ts";
import { checkFields } from "./check-fields.ts";
import { type PerFilterConfigs, compilePerFilterConfigs } from "./compile-per-filter-config.ts";
import { httpsLocation } from "./compile-redirect.ts";
import { compileRetryPolicy } from "./compile-retry-policy.ts";
import type { MatchContext } from "./compile-route-match.ts";
import type { Metadata } from "./matchers/metadata-matcher.ts";
import { RouteList, maxWalkedRoutes } from "./route-list.ts";
import {
  type RouteSource,
  UndecodableError,
  type VirtualHostSource,
  decodedSource,
  encodedSource,
} from "./route-source.ts";
import {
  type CompiledRoute,
  type HeaderLevel,
  type RouteParent,
  compileHeaderLevel,
  compileRoute,
  defaultMaxDirectResponseBodyBytes,
} from "./compile-route.ts";
import type { CompileScope } from "./compile-scope.ts";
import { type Sliced, runAtOnce, runInSlices } from "./in-slices.ts";
import { type Compiled, Place, Problems, compiled, problemsText } from "./problems.ts";

export interface RouteConfigurationOptions {
  /** For `validate_clusters`: whether a cluster exists. An inline configuration is validated unless it says no, RDS is not. */
  readonly clusterExists?: (name: string) => boolean;
  readonly isInline?: boolean;
}

/** One draw for each match, made only when asked for. */
class CurrentMatch implements MatchContext {
  dynamicMetadata: Metadata | undefined = undefined;
  #random: () => number = Math.random;
  #drawn = -1;

  restart(random: () => number, dynamicMetadata: Metadata | undefined): void {
    this.dynamicMetadata = dynamicMetadata;
    this.#random = random;
    this.#drawn = -1;
  }

  value(): number {
    if (this.#drawn < 0) this.#drawn = this.#random();
    return this.#drawn;
  }
}

/** Matching is synchronous, so that one serves all tables. */
const current = new CurrentMatch();

/**
 * Above this many routes a virtual host stays compiled; below, compiling it takes its first request a third of a millisecond at most.
 */
const maxRoutesCompiledLate = 32;

/** How a virtual host answers. */
class HostRoutes {
  readonly #routes: RouteList;
  readonly #httpsRedirect: RouteMatch | undefined;

  constructor(routes: readonly CompiledRoute[], httpsRedirect: RouteMatch | undefined) {
    this.#routes = new RouteList(routes);
    this.#httpsRedirect = httpsRedirect;
  }

  match(request: RequestHead): RouteMatch | undefined {
    if (this.#httpsRedirect !== undefined && request.scheme !== "https") return this.#httpsRedirect;
    return this.#routes.find(request, current)?.select(request, current);
  }
}

/** What compiling a virtual host came to. */
interface BuiltHost {
  readonly message: VirtualHost;
  readonly routes: HostRoutes;
  /** Clusters that its routes may choose. */
  readonly clusterNames: ReadonlySet<string>;
  /** A body is what a file held at that moment: compiled once more it may come to something else. */
  readonly readsFiles: boolean;
  /** Whether compiling it for its first request would take that one little. */
  readonly isShort: boolean;
}

/**
 * A virtual host of a table. One that came encoded is compiled when it comes, which proves that it is good, and once more for the first
 * request that asks for it: a mesh's proxy is told of a thousand services and calls five. What was compiled of the others is gone
 * with the next collection; kept, it made five collections of 12 ms in each push of ten thousand routes.
 */
class CompiledVirtualHost {
  readonly name: string;
  readonly domains: readonly string[];
  readonly clusterNames: readonly string[];
  readonly #build: TableBuild;
  readonly #readsFiles: boolean;
  #source: VirtualHostSource;
  #routes: HostRoutes | undefined;

  constructor(built: BuiltHost, source: VirtualHostSource, build: TableBuild) {
    this.name = built.message.name;
    this.domains = built.message.domains;
    this.clusterNames = [...built.clusterNames];
    this.#build = build;
    this.#readsFiles = built.readsFiles;
    this.#source = source;
    const isRepeatable = source.encoded !== undefined && !built.readsFiles && build.clusterExists === undefined;
    const isCompiledLate = isRepeatable && built.isShort;
    this.#routes = isCompiledLate ? undefined : built.routes;
  }

  match(request: RequestHead): RouteMatch | undefined {
    this.#routes ??= compileLate(this.#source, this.#build);
    return this.#routes.match(request);
  }

  /** Whether `source` is what this was compiled from; from now on this one's bytes are held, and not those of a message of long ago. */
  comesAgainAs(source: VirtualHostSource): boolean {
    if (this.#readsFiles || !isSame(this.#source.encoded, source.encoded)) return false;
    this.#source = source;
    return true;
  }
}

function compileLate(source: VirtualHostSource, build: TableBuild): HostRoutes {
  const problems = new Problems();
  const { routes } = runAtOnce(buildVirtualHost(source, { ...build, problems }, Place.root));
  if (problems.hasErrors)
    throw new Error(`virtual host ${source.name} was good before: ${problemsText(problems.list)}`);
  return routes;
}

interface TableParts {
  readonly name: string;
  readonly hosts: ReadonlyMap<string, CompiledVirtualHost>;
  readonly index: VirtualHostIndex<CompiledVirtualHost>;
  /** The configuration without its virtual hosts, as it came; undefined = its hosts hold for no other table. */
  readonly encoded: Uint8Array | undefined;
}

class CompiledRouteTable implements RouteTable {
  readonly name: string;
  readonly clusterNames: ReadonlySet<string>;
  readonly #hosts: ReadonlyMap<string, CompiledVirtualHost>;
  readonly #index: VirtualHostIndex<CompiledVirtualHost>;
  readonly #encoded: Uint8Array | undefined;

  constructor({ name, hosts, index, encoded }: TableParts) {
    this.name = name;
    this.clusterNames = new Set([...hosts.values()].flatMap((host) => host.clusterNames));
    this.#hosts = hosts;
    this.#index = index;
    this.#encoded = encoded;
  }

  match(request: RequestHead, random: () => number, dynamicMetadata?: Metadata): RouteMatch | undefined {
    const host = this.#index.find(request.authority);
    if (host === undefined) return undefined;
    current.restart(random, dynamicMetadata);
    return host.match(request);
  }

  /** The host that comes again just as it was, under settings of the table that are just as they were. */
  unchanged(host: VirtualHostSource, encodedTable: Uint8Array | undefined): CompiledVirtualHost | undefined {
    if (!isSame(this.#encoded, encodedTable)) return undefined;
    const known = this.#hosts.get(host.name);
    return known?.comesAgainAs(host) === true ? known : undefined;
  }
}

function isSame(before: Uint8Array | undefined, now: Uint8Array | undefined): boolean {
  return before !== undefined && now !== undefined && Buffer.compare(before, now) === 0;
}

/** The table, or every problem with its place in the message. */
export function compileRouteConfiguration(
  message: RouteConfiguration,
  scope: CompileScope,
  options: RouteConfigurationOptions = {},
): Compiled<RouteTable> {
  const problems = new Problems();
  return compiled(runAtOnce(buildRouteTable(decodedSource(message), scope, options, Place.root, problems)), problems);
}

/** The same of an encoded message, with pauses in which requests are served. What `previous` has of it already is taken from there. */
export async function compileEncodedRoutes(
  bytes: Uint8Array,
  scope: CompileScope,
  options: RouteConfigurationOptions & { readonly previous?: RouteTable | undefined } = {},
): Promise<Compiled<RouteTable>> {
  const problems = new Problems();
  try {
    const table = await runInSlices(buildRouteTable(encodedSource(bytes), scope, options, Place.root, problems));
    return compiled(table, problems);
  } catch (error) {
    if (!(error instanceof UndecodableError)) throw error;
    problems.error(Place.root, `cannot be decoded: ${error.message}`);
    return compiled<RouteTable>(undefined, problems);
  }
}

/** What every virtual host of a configuration shares. Not its message: that is views of a response, which hosts outlive. */
interface TableBuild {
  readonly mostSpecificWins: boolean;
  readonly maxDirectResponseBodyBytes: number;
  readonly scope: CompileScope;
  readonly problems: Problems;
  readonly level: HeaderLevel;
  readonly perFilterConfigs: PerFilterConfigs;
  readonly clusterExists: ((name: string) => boolean) | undefined;
}

export function* buildRouteTable(
  source: RouteSource,
  scope: CompileScope,
  options: RouteConfigurationOptions & { readonly previous?: RouteTable | undefined },
  place: Place,
  problems: Problems,
): Sliced<RouteTable> {
  const { message } = source;
  checkFields(message, place, problems);
  const validates = message.validateClusters ?? options.isInline ?? false;
  const build: TableBuild = {
    mostSpecificWins: message.mostSpecificHeaderMutationsWins,
    maxDirectResponseBodyBytes: message.maxDirectResponseBodySizeBytes ?? defaultMaxDirectResponseBodyBytes,
    scope,
    problems,
    level: compileHeaderLevel(message, scope, place, problems),
    perFilterConfigs: compilePerFilterConfigs(
      message.typedPerFilterConfig,
      new Map(),
      place.field("typed_per_filter_config"),
      problems,
    ),
    clusterExists: validates ? options.clusterExists : undefined,
  };
  // A host that is checked against the clusters that there are is checked each time.
  const encoded = validates ? undefined : source.encoded;
  const previous = options.previous instanceof CompiledRouteTable ? options.previous : undefined;
  const index = new VirtualHostIndex<CompiledVirtualHost>(message.ignorePortInHostMatching);
  const hosts = new Map<string, CompiledVirtualHost>();
  for (const [position, host] of source.virtualHosts.entries()) {
    const at = place.field("virtual_hosts", position);
    const compiledHost =
      previous?.unchanged(host, encoded) ??
      new CompiledVirtualHost(yield* buildVirtualHost(host, build, at), host, build);
    const { name } = compiledHost;
    if (hosts.has(name)) {
      problems.error(at, `Only unique names for virtual hosts are permitted. Duplicate entry of virtual host ${name}`);
    }
    hosts.set(name, compiledHost);
    addDomains(compiledHost, index, message.name, at, problems);
    yield undefined;
  }
  return new CompiledRouteTable({ name: message.name, hosts, index, encoded });
}

function addDomains(
  host: CompiledVirtualHost,
  index: VirtualHostIndex<CompiledVirtualHost>,
  tableName: string,
  place: Place,
  problems: Problems,
): void {
  if (host.domains.length === 0) problems.error(place.field("domains"), "value must contain at least 1 item(s)");
  for (const [position, domain] of host.domains.entries()) {
    if (index.add(domain, host)) continue;
    const at = place.field("domains", position);
    if (domain === "*") {
      problems.error(at, `Only a single wildcard domain is permitted in route ${tableName}`);
    } else {
      problems.error(
        at,
        `Only unique values for domains are permitted. Duplicate entry of domain ${domain} in route ${tableName}`,
      );
    }
  }
}

function* buildVirtualHost(source: VirtualHostSource, build: TableBuild, place: Place): Sliced<BuiltHost> {
  const { scope, problems } = build;
  const { message: host, routeCount, routes } = source.open();
  if (host.name === "") problems.error(place.field("name"), "value length must be at least 1 characters");
  checkFields(host, place, problems);
  const clusterNames = new Set<string>();
  let readsFiles = false;
  const parent: RouteParent = {
    scope,
    problems,
    virtualHostName: host.name,
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
    clusterNames,
    needsPathIndex: routeCount > maxWalkedRoutes,
    onFileRead: () => {
      readsFiles = true;
    },
  };
  const compiledRoutes: CompiledRoute[] = [];
  for (const route of routes) {
    const at = place.field("routes", compiledRoutes.length);
    checkFields(route, at, problems);
    compiledRoutes.push(compileRoute(route, parent, at));
    yield undefined;
  }
  const httpsRedirect = httpsRedirectOf(host, place, problems);
  const hostRoutes = new HostRoutes(compiledRoutes, httpsRedirect);
  return { message: host, routes: hostRoutes, clusterNames, readsFiles, isShort: routeCount <= maxRoutesCompiledLate };
}

function httpsRedirectOf(host: VirtualHost, place: Place, problems: Problems): RouteMatch | undefined {
  if (host.requireTls === TlsRequirement.NONE) return undefined;
  if (host.requireTls === TlsRequirement.EXTERNAL_ONLY) {
    problems.error(place.field("require_tls"), "EXTERNAL_ONLY is not supported");
    return undefined;
  }
  return {
    route: { name: "", metadata: {}, perFilterConfig: new Map() },
    virtualHostName: host.name,
    action: { type: "redirect", status: 301, location: httpsLocation, finalizeResponse: () => {} },
  };
}
