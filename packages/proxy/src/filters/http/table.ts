// Every HTTP filter that the proxy knows. Requests pass them in the order of the connection manager's own list; this
// table only says which types exist. A new filter is a folder beside this file and a row here.
import { typeUrlPrefix } from "../../fields/typed-config.ts";
import type { FilterRegistration } from "./filter-registration.ts";
import { corsRegistration } from "./cors/cors-registration.ts";
import { dynamicForwardProxyRegistration } from "./dynamic-forward-proxy/dynamic-forward-proxy-registration.ts";
import { extAuthzRegistration } from "./ext-authz/ext-authz-registration.ts";
import { grpcStatsRegistration } from "./grpc-stats/grpc-stats-registration.ts";
import { grpcWebRegistration } from "./grpc-web/grpc-web-registration.ts";
import { istioStatsRegistration } from "./istio-stats/istio-stats-registration.ts";
import { jwtAuthnRegistration } from "./jwt-authn/jwt-authn-registration.ts";
import { oauth2Registration } from "./oauth2/oauth2-registration.ts";
import { rbacRegistration } from "./rbac/rbac-registration.ts";
import { routerRegistration } from "./router/router-registration.ts";

export const httpFilters: readonly FilterRegistration[] = [
  istioStatsRegistration,
  corsRegistration,
  dynamicForwardProxyRegistration,
  jwtAuthnRegistration,
  oauth2Registration,
  rbacRegistration,
  grpcWebRegistration,
  grpcStatsRegistration,
  extAuthzRegistration,
  routerRegistration,
];

const byType = new Map(httpFilters.flatMap((filter) => filter.types.map((type) => [typeUrlPrefix + type, filter])));
const byRouteType = new Map(
  httpFilters.flatMap((filter) => (filter.routeTypes ?? []).map((type) => [typeUrlPrefix + type, filter])),
);

export function filterOfType(typeUrl: string): FilterRegistration | undefined {
  return byType.get(typeUrl);
}

export function filterOfRouteType(typeUrl: string): FilterRegistration | undefined {
  return byRouteType.get(typeUrl);
}
