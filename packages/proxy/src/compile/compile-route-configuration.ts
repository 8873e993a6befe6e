// A route configuration into the route table that requests are matched with (config.route.v3.RouteConfiguration).
import type { RouteConfiguration } from "@tulle/xds/envoy/config/route/v3/route_pb";
import type { RequestHead } from "../http/message.ts";
import type { Route, RouteMatch, RouteTable } from "../route/route-table.ts";
import { VirtualHostIndex } from "../route/virtual-host-index.ts";
import { checkFields } from "../fields/check-fields.ts";
import { compilePerFilterConfigs } from "./compile-per-filter-config.ts";
import type { MatchContext } from "../fields/compile-route-match.ts";
import { compileHeaderLevel } from "./compile-header-level.ts";
import { defaultMaxDirectResponseBodyBytes } from "./compile-route.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import { type CompiledVirtualHost, type TableBuild, compileVirtualHost, isSame } from "./compile-virtual-host.ts";
import { type Sliced, runAtOnce, runInSlices } from "@tulle/timing";
import { KnownShapes } from "./known-shapes.ts";
import type { Metadata } from "../fields/matchers/metadata-matcher.ts";
import { type Compiled, Place, Problems, compiled } from "../fields/problems.ts";
import {
  type RouteSource,
  UndecodableError,
  type VirtualHostSource,
  decodedSource,
  encodedSource,
} from "./route-source.ts";
import { routeConfigurationMessage } from "./route-fields.ts";

export interface RouteConfigurationOptions {
  /**
   * For `validate_clusters`: whether a cluster exists. An inline configuration is validated unless it says no, RDS is
   * not.
   */
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

interface TableParts {
  readonly name: string;
  readonly hosts: ReadonlyMap<string, CompiledVirtualHost>;
  readonly index: VirtualHostIndex<CompiledVirtualHost>;
  /** The configuration without its virtual hosts, as it came; undefined = its hosts hold for no other table. */
  readonly encoded: Uint8Array | undefined;
  readonly known: KnownShapes | undefined;
}

class CompiledRouteTable implements RouteTable {
  readonly name: string;
  readonly clusterNames: ReadonlySet<string>;
  readonly #hosts: ReadonlyMap<string, CompiledVirtualHost>;
  readonly #index: VirtualHostIndex<CompiledVirtualHost>;
  readonly #encoded: Uint8Array | undefined;
  /** They hold for another table with these settings. */
  readonly known: KnownShapes | undefined;

  constructor({ name, hosts, index, encoded, known }: TableParts) {
    this.name = name;
    this.clusterNames = new Set([...hosts.values()].flatMap((host) => host.clusterNames));
    this.#hosts = hosts;
    this.#index = index;
    this.#encoded = encoded;
    this.known = known;
  }

  match(request: RequestHead, random: () => number, dynamicMetadata?: Metadata): RouteMatch | undefined {
    const host = this.#index.find(request.authority);
    if (host === undefined) return undefined;
    current.restart(random, dynamicMetadata);
    return host.match(request, current);
  }

  virtualHostMetadata(authority: string): Route["metadata"] | undefined {
    return this.#index.find(authority)?.metadata;
  }

  /** Whether what holds for this table holds for another one with these settings. */
  hasSettings(encodedTable: Uint8Array | undefined): boolean {
    return isSame(this.#encoded, encodedTable);
  }

  /** The host that comes again just as it was, under the same settings. */
  unchanged(host: VirtualHostSource): CompiledVirtualHost | undefined {
    const known = this.#hosts.get(host.name);
    return known?.comesAgainAs(host) === true ? known : undefined;
  }
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

/**
 * The same of an encoded message, with pauses in which requests are served. What `previous` has of it already is taken
 * from there.
 */
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

export function* buildRouteTable(
  source: RouteSource,
  scope: CompileScope,
  options: RouteConfigurationOptions & { readonly previous?: RouteTable | undefined },
  place: Place,
  problems: Problems,
): Sliced<RouteTable> {
  const { message } = source;
  checkFields(routeConfigurationMessage, message, place, problems);
  const validates = message.validateClusters ?? options.isInline ?? false;
  // A host that is checked against the clusters that there are is checked each time.
  const encoded = validates ? undefined : source.encoded;
  const before = options.previous;
  const previous = before instanceof CompiledRouteTable && before.hasSettings(encoded) ? before : undefined;
  const known = validates ? undefined : (previous?.known ?? new KnownShapes());
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
    known,
  };
  const index = new VirtualHostIndex<CompiledVirtualHost>(message.ignorePortInHostMatching);
  const hosts = new Map<string, CompiledVirtualHost>();
  for (const [position, host] of source.virtualHosts.entries()) {
    const at = place.field("virtual_hosts", position);
    const compiledHost = previous?.unchanged(host) ?? (yield* compileVirtualHost(host, build, at));
    const { name } = compiledHost;
    if (hosts.has(name)) {
      problems.error(at, `Only unique names for virtual hosts are permitted. Duplicate entry of virtual host ${name}`);
    }
    hosts.set(name, compiledHost);
    addDomains(compiledHost, index, message.name, at, problems);
    yield undefined;
  }
  return new CompiledRouteTable({ name: message.name, hosts, index, encoded, known });
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
