// Every network filter that the proxy knows. Connections pass them in the order of the filter chain's own list; this
// table only says which types exist. A new filter is a folder beside this file and a row here.
import { typeUrlPrefix } from "../../fields/typed-config.ts";
import type { NetworkFilterRegistration } from "./network-filter-registration.ts";
import { httpConnectionManagerRegistration } from "../../http-connection-manager/http-connection-manager-registration.ts";
import { networkExtAuthzRegistration } from "./ext-authz/network-ext-authz-registration.ts";
import { networkRbacRegistration } from "./rbac/network-rbac-registration.ts";
import { sniClusterRegistration } from "./sni-cluster/sni-cluster-registration.ts";
import { sniDynamicForwardProxyRegistration } from "./sni-dynamic-forward-proxy/sni-dynamic-forward-proxy-registration.ts";
import { tcpProxyRegistration } from "./tcp-proxy/tcp-proxy-registration.ts";

export const networkFilters: readonly NetworkFilterRegistration[] = [
  networkRbacRegistration,
  networkExtAuthzRegistration,
  sniClusterRegistration,
  sniDynamicForwardProxyRegistration,
  httpConnectionManagerRegistration,
  tcpProxyRegistration,
];

const byType = new Map(networkFilters.flatMap((filter) => filter.types.map((type) => [typeUrlPrefix + type, filter])));

export function networkFilterOfType(typeUrl: string): NetworkFilterRegistration | undefined {
  return byType.get(typeUrl);
}
