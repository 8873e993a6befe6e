// What a filter's folder gives to the table of filters: how its configuration becomes hooks on the request path.
import type { TypedConfig } from "../../fields/typed-config.ts";
import type { CompileScope } from "../../fields/compile-scope.ts";
import type { Place, Problems } from "../../fields/problems.ts";
import type { HttpFilter } from "../../http/filter.ts";
import type { SecretSlot } from "../../tls/secret-slot.ts";

export interface FilterBuild {
  /** The name in the HTTP connection manager's list. */
  readonly name: string;
  readonly scope: CompileScope;
  /** Listener.traffic_direction: metrics report as destination on the way in, as source otherwise. */
  readonly isInbound: boolean;
  /** Of the connection manager: a filter's own metrics stand below it. */
  readonly statPrefix: string;
  /** Clusters that the filter itself sends requests to are added here, and the secrets that it needs there. */
  readonly clusterNames: Set<string>;
  readonly secretSlots: Set<SecretSlot>;
  readonly place: Place;
  readonly problems: Problems;
}

export interface FilterRegistration {
  /**
   * Type URLs of `typed_config`, without `type.googleapis.com/`; the type alone says which filter is meant, as in
   * Envoy.
   */
  readonly types: readonly string[];
  /** A terminal filter stands last and answers or forwards. */
  readonly isTerminal: boolean;
  /** Undefined after an error. */
  compile(config: TypedConfig, build: FilterBuild): HttpFilter | undefined;
  /** Types that the filter takes in `typed_per_filter_config`, and what it makes of them. */
  readonly routeTypes?: readonly string[];
  /** `above`: what it has made of the level above, a virtual host's, say; undefined where nothing stands there. */
  compileRoute?(config: TypedConfig, place: Place, problems: Problems, above?: unknown): unknown;
}
