// The stage `scope`: (snapshot, proxy) → ProxyView. Pure; what many proxies share is worked out once for a snapshot.
import { labelledNetwork } from "@tulle/config";
import type { EndpointSnapshot, MeshSnapshot } from "../snapshot/mesh-snapshot.ts";
import { clientOf } from "./client.ts";
import { Keyed } from "./keyed.ts";
import type { Proxy } from "./proxy.ts";
import type { ProxyView } from "./proxy-view.ts";
import { type GatewayGroup, type GatewayShared, gatewayOwn, gatewayShared } from "./scope-gateway.ts";
import { type SidecarGroup, type SidecarShared, sidecarOwn, sidecarShared } from "./scope-sidecar.ts";

/** By the key of what they are made of besides the snapshot. */
interface SharedSections {
  readonly sidecars: Map<string, SidecarShared>;
  readonly gateways: Map<string, GatewayShared>;
  readonly prefersNear: boolean;
}

const bySnapshot = new WeakMap<MeshSnapshot, SharedSections>();

/**
 * Of the endpoints views depend on `encryptedOnly`, where a proxy has no certificate, and on those whose addresses
 * clients dial themselves (`followsEndpoints`).
 */
export function scope(snapshot: MeshSnapshot, proxy: Proxy, endpoints: EndpointSnapshot): ProxyView {
  const { encryptedOnly } = endpoints;
  let shared = bySnapshot.get(snapshot);
  if (shared === undefined) {
    const prefersNear = snapshot.destinationRules.some(ejects);
    bySnapshot.set(snapshot, (shared = { sidecars: new Map(), gateways: new Map(), prefersNear }));
  }
  const { type, namespace, labels, podPorts } = proxy;
  const own = {
    ...(proxy.withoutCertificate === true ? { uncertified: { encryptedOnly } } : {}),
    ...networkOfProxy(snapshot, proxy),
    // Nothing where it decides nothing, likewise.
    ...(shared.prefersNear && proxy.locality !== undefined ? { locality: proxy.locality } : {}),
  };
  if (type === "sidecar") {
    const group = Keyed.of<SidecarGroup>({
      ...clientOf(snapshot, proxy),
      ...(proxy.interceptionMode === "NONE" ? {} : { isCaptured: true as const }),
      ...own,
    });
    const sidecars = remembered(shared.sidecars, group, (each) => sidecarShared(snapshot, each));
    return { type, ...sidecars, own: Keyed.of(sidecarOwn(snapshot, sidecars, proxy, endpoints)) };
  }
  const group = Keyed.of<GatewayGroup>({ namespace, labels, podPorts, ...own });
  const gateways = remembered(shared.gateways, group, (each) => gatewayShared(snapshot, each));
  const { clusters, routes } = gateways;
  return { type, clusters, routes, own: Keyed.of(gatewayOwn(snapshot, gateways, proxy)) };
}

/** Whether a proxy's view is another with other endpoints. */
export function followsEndpoints({ withoutCertificate }: Proxy, view: ProxyView): boolean {
  return (
    withoutCertificate === true || (view.type === "sidecar" && view.own.value.captured?.outbound.pods !== undefined)
  );
}

/** `build` sees the group and no more of the proxy: what else it looked at would be missing in the key. */
function remembered<Group, Shared>(
  known: Map<string, Shared>,
  group: Keyed<Group>,
  build: (group: Group) => Shared,
): Shared {
  let shared = known.get(group.key);
  if (shared === undefined) known.set(group.key, (shared = build(group.value)));
  return shared;
}

/** Near endpoints come first where those that fail are noticed (Istio: locality failover takes outlier detection). */
function ejects({ trafficPolicy, subsets }: MeshSnapshot["destinationRules"][number]): boolean {
  return [trafficPolicy, ...subsets.map((subset) => subset.trafficPolicy)].some(
    (policy) =>
      policy?.outlierDetection !== undefined ||
      policy?.portLevelSettings?.some(({ outlierDetection }) => outlierDetection !== undefined) === true,
  );
}

/** Nothing where it decides nothing, so that proxies of all networks share their sections then. */
function networkOfProxy(
  { networkGateways }: MeshSnapshot,
  { network: said, labels }: Proxy,
): { readonly network?: string } {
  const network = said ?? labelledNetwork(labels);
  return networkGateways === undefined || network === undefined ? {} : { network };
}
