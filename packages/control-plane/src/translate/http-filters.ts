// The order of HTTP filters, in one table: a filter of the mesh is a row here and a folder in the proxy.
import { create } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { CorsSchema } from "@tulle/xds/envoy/extensions/filters/http/cors/v3/cors_pb";
import { FilterConfigSchema as DynamicForwardProxyFilterSchema } from "@tulle/xds/envoy/extensions/filters/http/dynamic_forward_proxy/v3/dynamic_forward_proxy_pb";
import { FilterConfigSchema as GrpcStatsSchema } from "@tulle/xds/envoy/extensions/filters/http/grpc_stats/v3/config_pb";
import { GrpcWebSchema } from "@tulle/xds/envoy/extensions/filters/http/grpc_web/v3/grpc_web_pb";
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
import { corsFilterName } from "./cors-policy.ts";
import { hiddenDotSegments } from "./hidden-dot-segments.ts";
import { jwtAuthentication } from "./jwt-authentication.ts";
import { pack } from "./messages.ts";
import { statsConfig } from "./stats-config.ts";
import { dnsCacheOf } from "./dns-caches.ts";

export type FilterPlacement = "inbound" | "outbound" | "gateway";

/** What of a proxy's part of the view its filters depend on. */
export type JudgedBy = Pick<SidecarOwn | GatewayOwn, "security" | "pathNormalization" | "telemetry"> &
  Partial<Pick<SidecarOwn, "captured">>;

interface FilterRow {
  readonly placements: readonly FilterPlacement[];
  /** In their order; none where nothing asks for one. */
  readonly filters: (placement: FilterPlacement, own: JudgedBy, isGrpcWeb: boolean) => readonly HttpFilter[];
}

const isCaptured = (own: JudgedBy): boolean => own.captured !== undefined;

const everywhere: readonly FilterPlacement[] = ["inbound", "outbound", "gateway"];

/** Judges requests; a client's sidecar sends them as they are. */
const judging: readonly FilterPlacement[] = ["inbound", "gateway"];

const filterTable: readonly FilterRow[] = [
  {
    placements: everywhere,
    // Istio's own message, so that Istio's Envoy understands it as well. A client's Host names no service at a
    // gateway. A stock Envoy, which does not have it, skips it.
    filters: (placement, { telemetry }) => {
      const stats = statsConfig(placement === "inbound" ? telemetry?.server : telemetry?.client);
      if (stats === undefined) return [];
      const value = { ...(placement === "gateway" ? { disable_host_header_fallback: true } : {}), ...stats };
      const config = pack(TypedStructSchema, { typeUrl: "type.googleapis.com/stats.PluginConfig", value });
      return filter("istio.stats", config, { isOptional: true });
    },
  },
  // A gateway judges by its routes too.
  {
    placements: judging,
    filters: (placement, { security, pathNormalization }) =>
      pathNormalization === "NONE" || (placement === "inbound" && security === undefined)
        ? []
        : filter("tulle.hidden_dot_segments", hiddenDotSegments()),
  },
  // The token that a sign-in adds is judged like any other.
  { placements: ["gateway"], filters: (_placement, { security }) => browserLoginFilters(security?.logins ?? []) },
  // Who sent the token comes before what its sender may do.
  {
    placements: judging,
    filters: (placement, { security }) =>
      security === undefined || security.jwtRules.length === 0
        ? []
        : filter(
            "envoy.filters.http.jwt_authn",
            jwtAuthentication(security.jwtRules, { clearsRouteCache: placement === "gateway" }),
          ),
  },
  // Authorizers are asked before the rules that stand in the mesh.
  {
    placements: judging,
    filters: (_placement, { security }) =>
      customHttpFilters(security).flatMap(({ name, config }) => filter(name, config)),
  },
  ...authorizationActions.map((action): FilterRow => ({
    placements: judging,
    filters: (_placement, { security }) =>
      filter(`istio.authorization.${action.toLowerCase()}`, authorizationFilter(security?.policies ?? [], action)),
  })),
  // Browsers speak gRPC to gateways, or through them to applications. What comes behind sees gRPC.
  {
    placements: judging,
    filters: (_placement, _own, isGrpcWeb) =>
      isGrpcWeb ? filter("envoy.filters.http.grpc_web", pack(GrpcWebSchema, {})) : [],
  },
  // Its numbers of messages are what Istio's metrics of messages are made of.
  {
    placements: everywhere,
    filters: () => {
      const perMethodStatSpecifier = { case: "statsForAllMethods", value: { value: false } } as const;
      const config = pack(GrpcStatsSchema, { emitFilterState: true, perMethodStatSpecifier });
      return filter("envoy.filters.http.grpc_stats", config);
    },
  },
  // Its policies stand at routes.
  { placements: ["outbound", "gateway"], filters: () => filter(corsFilterName, pack(CorsSchema, {})) },
  {
    placements: ["outbound", "gateway"],
    filters: (placement, own) => {
      const user = { type: placement === "gateway" ? "router" : "sidecar", isCaptured: isCaptured(own) } as const;
      const implementationSpecifier = { case: "dnsCacheConfig", value: dnsCacheOf(user) } as const;
      const config = pack(DynamicForwardProxyFilterSchema, { implementationSpecifier });
      return filter("envoy.filters.http.dynamic_forward_proxy", config);
    },
  },
  { placements: everywhere, filters: () => filter("envoy.filters.http.router", pack(RouterSchema, {})) },
];

function filter(
  name: string,
  value: Any | undefined,
  more: { readonly isOptional?: true } = {},
): readonly HttpFilter[] {
  if (value === undefined) return [];
  return [create(HttpFilterSchema, { name, ...more, configType: { case: "typedConfig", value } })];
}

/** A thousand policies take a while to encode, and many listeners have the same ones. */
const bySecurity = new WeakMap<WorkloadSecurity, Map<string, readonly HttpFilter[]>>();

/** `isGrpcWeb`: what is asked of the port is gRPC-Web. */
export function httpFilters(placement: FilterPlacement, own: JudgedBy, isGrpcWeb = false): HttpFilter[] {
  const { security, pathNormalization, telemetry } = own;
  if (security === undefined) return makeFilters(placement, own, isGrpcWeb);
  let known = bySecurity.get(security);
  if (known === undefined) bySecurity.set(security, (known = new Map()));
  const { metrics } = (placement === "inbound" ? telemetry?.server : telemetry?.client) ?? {};
  const key = `${placement} ${pathNormalization} ${isGrpcWeb} ${isCaptured(own)} ${telemetry === undefined} ${JSON.stringify(metrics)}`;
  let filters = known.get(key);
  if (filters === undefined) known.set(key, (filters = makeFilters(placement, own, isGrpcWeb)));
  return [...filters];
}

function makeFilters(placement: FilterPlacement, own: JudgedBy, isGrpcWeb: boolean): HttpFilter[] {
  return filterTable
    .filter(({ placements }) => placements.includes(placement))
    .flatMap(({ filters }) => filters(placement, own, isGrpcWeb));
}
