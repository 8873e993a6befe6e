// Endpoints in networks that are not the proxy's own: it reaches them by the gateways there, which pass on its mutual
// TLS by the server name (Istio: EndpointsByNetworkFilter).
import type { ForeignNetworks } from "../scope/proxy-view.ts";
import type { MeshEndpoint } from "../snapshot/mesh-snapshot.ts";
import type { NetworkGateway } from "../snapshot/networks.ts";

/** envoy.config.endpoint.v3.LbEndpoint.load_balancing_weight: 32 bits. */
const maxWeight = 4_294_967_295;

/**
 * Of each locality the endpoints that are reached directly, and for all others the gateways of their networks, with the
 * sum of their weights. `takesMutualTls` tells whose connections can be passed on: of others nobody could tell whom
 * they are for, and they are left out. A network without a gateway is one that can be reached directly.
 */
export function byNetwork(
  endpoints: readonly MeshEndpoint[],
  networks: ForeignNetworks | undefined,
  takesMutualTls: (endpoint: MeshEndpoint) => boolean,
): readonly MeshEndpoint[] {
  if (networks === undefined) return endpoints.filter(isReachable);
  const scale = commonMultiple(Object.values(networks.gateways).map(({ length }) => length));
  const byLocality = Map.groupBy(endpoints, ({ locality }) => locality);
  return [...byLocality].flatMap(([locality, own]) => {
    const direct: MeshEndpoint[] = [];
    const weights = new Map<NetworkGateway, number>();
    for (const endpoint of own) {
      const gateways = gatewaysOf(networks, endpoint.network);
      const weight = Math.min((endpoint.weight ?? 1) * scale, maxWeight);
      if (gateways.length === 0) {
        if (isReachable(endpoint)) direct.push(weight === 1 ? endpoint : { ...endpoint, weight });
      } else if (takesMutualTls(endpoint)) {
        for (const gateway of gateways)
          weights.set(gateway, (weights.get(gateway) ?? 0) + Math.max(1, Math.floor(weight / gateways.length)));
      }
    }
    return [...direct, ...[...weights].map(([gateway, weight]) => gatewayEndpoint(gateway, weight, locality))];
  });
}

/** None for what is reached directly. Names of networks are anybody's words. */
function gatewaysOf({ own, gateways }: ForeignNetworks, network: string | undefined): readonly NetworkGateway[] {
  const isElsewhere = network !== undefined && network !== own && Object.hasOwn(gateways, network);
  return isElsewhere ? gateways[network]! : [];
}

/** One without an address is in a network that is entered by gateways alone. */
function isReachable({ address }: MeshEndpoint): boolean {
  return address !== "";
}

/** What answers is behind the gateway: of which workload it is, is told by itself. */
function gatewayEndpoint({ address, port }: NetworkGateway, sum: number, locality: string | undefined): MeshEndpoint {
  const weight = Math.min(sum, maxWeight);
  return {
    address,
    port,
    labels: {},
    workload: "",
    namespace: "",
    ...(locality === undefined ? {} : { locality }),
    ...(weight === 1 ? {} : { weight }),
    tlsMode: "istio",
  };
}

/**
 * By it the weights of endpoints can be split among the gateways of any network; of very many, as exactly as weights
 * are.
 */
function commonMultiple(counts: readonly number[]): number {
  return counts.reduce((product, count) => Math.min(maxWeight, (product * count) / commonDivisor(product, count)), 1);
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b);
}
