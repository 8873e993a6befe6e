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
import { RouteList } from "./route-list.ts";
import {
  type CompiledRoute,
  type HeaderLevel,
  compileHeaderLevel,
  compileRoute,
  defaultMaxDirectResponseBodyBytes,
} from "./compile-route.ts";
import type { CompileScope } from "./compile-scope.ts";
import { type Sliced, runAtOnce, runInSlices } from "./in-slices.ts";
import { type Compiled, Place, Problems, compiled } from "./problems.ts";

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

class CompiledVirtualHost {
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

class CompiledRouteTable implements RouteTable {
  readonly name: string;
  readonly clusterNames: ReadonlySet<string>;
  readonly #index: VirtualHostIndex<CompiledVirtualHost>;

  constructor(name: string, clusterNames: ReadonlySet<string>, index: VirtualHostIndex<CompiledVirtualHost>) {
    this.name = name;
    this.clusterNames = clusterNames;
    this.#index = index;
  }

  match(request: RequestHead, random: () => number, dynamicMetadata?: Metadata): RouteMatch | undefined {
    const host = this.#index.find(request.authority);
    if (host === undefined) return undefined;
    current.restart(random, dynamicMetadata);
    return host.match(request);
  }
}

/** The table, or every problem with its place in the message. */
export function compileRouteConfiguration(
  message: RouteConfiguration,
  scope: CompileScope,
  options: RouteConfigurationOptions = {},
): Compiled<RouteTable> {
  const problems = new Problems();
  return compiled(runAtOnce(buildRouteTable(message, scope, options, Place.root, problems)), problems);
}

/** The same with pauses in which requests are served. */
export async function compileRouteConfigurationInSlices(
  message: RouteConfiguration,
  scope: CompileScope,
  options: RouteConfigurationOptions = {},
): Promise<Compiled<RouteTable>> {
  const problems = new Problems();
  return compiled(await runInSlices(buildRouteTable(message, scope, options, Place.root, problems)), problems);
}

/** What every virtual host of a configuration shares. */
interface TableBuild {
  readonly message: RouteConfiguration;
  readonly scope: CompileScope;
  readonly problems: Problems;
  readonly level: HeaderLevel;
  readonly perFilterConfigs: PerFilterConfigs;
  readonly clusterExists: ((name: string) => boolean) | undefined;
  readonly clusterNames: Set<string>;
}

export function* buildRouteTable(
  message: RouteConfiguration,
  scope: CompileScope,
  options: RouteConfigurationOptions,
  place: Place,
  problems: Problems,
): Sliced<RouteTable> {
  checkFields({ ...message, virtualHosts: [] }, place, problems);
  const validates = message.validateClusters ?? options.isInline ?? false;
  const build: TableBuild = {
    message,
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
    clusterNames: new Set(),
  };
  const index = new VirtualHostIndex<CompiledVirtualHost>(message.ignorePortInHostMatching);
  const names = new Set<string>();
  for (const [position, host] of message.virtualHosts.entries()) {
    const at = place.field("virtual_hosts", position);
    if (names.has(host.name)) {
      problems.error(
        at,
        `Only unique names for virtual hosts are permitted. Duplicate entry of virtual host ${host.name}`,
      );
    }
    names.add(host.name);
    const compiledHost = yield* buildVirtualHost(host, build, at);
    addDomains(host, compiledHost, index, message.name, at, problems);
  }
  return new CompiledRouteTable(message.name, build.clusterNames, index);
}

function addDomains(
  host: VirtualHost,
  compiledHost: CompiledVirtualHost,
  index: VirtualHostIndex<CompiledVirtualHost>,
  tableName: string,
  place: Place,
  problems: Problems,
): void {
  if (host.domains.length === 0) problems.error(place.field("domains"), "value must contain at least 1 item(s)");
  for (const [position, domain] of host.domains.entries()) {
    if (index.add(domain, compiledHost)) continue;
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

function* buildVirtualHost(host: VirtualHost, build: TableBuild, place: Place): Sliced<CompiledVirtualHost> {
  const { scope, problems, message } = build;
  if (host.name === "") problems.error(place.field("name"), "value length must be at least 1 characters");
  checkFields({ ...host, routes: [] }, place, problems);
  const parent = {
    scope,
    problems,
    virtualHostName: host.name,
    levels: [compileHeaderLevel(host, scope, place, problems), build.level],
    mostSpecificWins: message.mostSpecificHeaderMutationsWins,
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
    maxDirectResponseBodyBytes: message.maxDirectResponseBodySizeBytes ?? defaultMaxDirectResponseBodyBytes,
    clusterExists: build.clusterExists,
    clusterNames: build.clusterNames,
  };
  const routes: CompiledRoute[] = [];
  for (const [position, route] of host.routes.entries()) {
    const at = place.field("routes", position);
    checkFields(route, at, problems);
    routes.push(compileRoute(route, parent, at));
    yield undefined;
  }
  return new CompiledVirtualHost(routes, httpsRedirectOf(host, place, problems));
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
