// The order of HTTP filters, in one table: a filter of the mesh is a row here and a folder in the proxy.
import { create } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { FilterConfigSchema as DynamicForwardProxyFilterSchema } from "@tulle/xds/envoy/extensions/filters/http/dynamic_forward_proxy/v3/dynamic_forward_proxy_pb";
import { RouterSchema } from "@tulle/xds/envoy/extensions/filters/http/router/v3/router_pb";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "@tulle/xds/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb";
import { TypedStructSchema } from "@tulle/xds/xds/type/v3/typed_struct_pb";
import type { GatewayOwn, SidecarOwn, WorkloadSecurity } from "../scope/proxy-view.ts";
import { authorizationActions, authorizationFilter } from "./authorization/authorization-filter.ts";
import { customHttpFilters } from "./authorization/custom-authorization.ts";
import { browserLoginFilters } from "./browser-login.ts";
import { hiddenDotSegments } from "./hidden-dot-segments.ts";
import { jwtAuthentication } from "./jwt-authentication.ts";
import { pack } from "./messages.ts";
import { passthroughDnsCache } from "./translate-clusters.ts";

export type FilterPlacement = "inbound" | "outbound" | "gateway";

interface FilterRow {
  readonly name: string;
  readonly placements: readonly FilterPlacement[];
  /** Skipped by a proxy that does not have it, as a stock Envoy has none of ours. */
  readonly optional: boolean;
  /** Undefined where nothing asks for the filter. */
  readonly config: (placement: FilterPlacement, own: JudgedBy) => Any | undefined;
}

/** What of a proxy's part of the view its filters depend on. */
export type JudgedBy = Pick<SidecarOwn | GatewayOwn, "security" | "pathNormalization">;

/** Sign-ins stand before this one: the token that they add is judged like any other. */
const loginsBefore = "envoy.filters.http.jwt_authn";
/** Authorizers are asked before this one, the first that decides by rules. */
const authorizersBefore = "istio.authorization.audit";

const everywhere: readonly FilterPlacement[] = ["inbound", "outbound", "gateway"];

const filterTable: readonly FilterRow[] = [
  {
    name: "istio.stats",
    placements: everywhere,
    optional: true,
    // Istio's own message, so that Istio's Envoy understands it as well. A client's Host names no service at a gateway.
    config: (placement) =>
      pack(TypedStructSchema, {
        typeUrl: "type.googleapis.com/stats.PluginConfig",
        value: placement === "gateway" ? { disable_host_header_fallback: true } : {},
      }),
  },
  // A gateway judges by its routes too.
  {
    name: "tulle.hidden_dot_segments",
    placements: ["inbound", "gateway"],
    optional: false,
    config: (placement, { security, pathNormalization }) =>
      pathNormalization === "NONE" || (placement === "inbound" && security === undefined)
        ? undefined
        : hiddenDotSegments(),
  },
  // Who sent the token comes before what its sender may do.
  {
    name: "envoy.filters.http.jwt_authn",
    placements: ["inbound", "gateway"],
    optional: false,
    config: (placement, { security }) =>
      security === undefined || security.jwtRules.length === 0
        ? undefined
        : jwtAuthentication(security.jwtRules, placement),
  },
  ...authorizationActions.map((action): FilterRow => ({
    name: `istio.authorization.${action.toLowerCase()}`,
    placements: ["inbound", "gateway"],
    optional: false,
    config: (_placement, { security }) => authorizationFilter(security?.policies ?? [], action),
  })),
  {
    name: "envoy.filters.http.dynamic_forward_proxy",
    placements: ["outbound"],
    optional: false,
    config: () =>
      pack(DynamicForwardProxyFilterSchema, {
        implementationSpecifier: { case: "dnsCacheConfig", value: passthroughDnsCache() },
      }),
  },
  {
    name: "envoy.filters.http.router",
    placements: everywhere,
    optional: false,
    config: () => pack(RouterSchema, {}),
  },
];

/** A thousand policies take a while to encode, and many listeners have the same ones. */
const bySecurity = new WeakMap<WorkloadSecurity, Map<string, readonly HttpFilter[]>>();

export function httpFilters(placement: FilterPlacement, own: JudgedBy): HttpFilter[] {
  const { security, pathNormalization } = own;
  if (security === undefined) return makeFilters(placement, own);
  let known = bySecurity.get(security);
  if (known === undefined) bySecurity.set(security, (known = new Map()));
  const key = `${placement} ${pathNormalization}`;
  let filters = known.get(key);
  if (filters === undefined) known.set(key, (filters = makeFilters(placement, own)));
  return [...filters];
}

function makeFilters(placement: FilterPlacement, own: JudgedBy): HttpFilter[] {
  return filterTable
    .filter((row) => row.placements.includes(placement))
    .flatMap((row) => {
      const before = filtersBefore(row.name, own.security);
      const value = row.config(placement, own);
      if (value === undefined) return before;
      const configType = { case: "typedConfig", value } as const;
      return [...before, create(HttpFilterSchema, { name: row.name, isOptional: row.optional, configType })];
    });
}

/** Filters that there may be several of. */
function filtersBefore(name: string, security: WorkloadSecurity | undefined): readonly HttpFilter[] {
  if (name === loginsBefore) return browserLoginFilters(security?.logins ?? []);
  if (name !== authorizersBefore) return [];
  return customHttpFilters(security).map(({ name: own, config: value }) =>
    create(HttpFilterSchema, { name: own, configType: { case: "typedConfig", value } }),
  );
}
