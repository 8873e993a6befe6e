// Which clusters a proxy has toward the mesh: what is made of Services is made from this list, clusters and endpoints
// alike.
import { outboundClusterName, sniName } from "../names/resource-names.ts";
import type { ClustersSection, ForeignNetworks, GatewayClusters, ScopedService } from "../scope/proxy-view.ts";
import { portTrafficPolicy } from "../scope/port-traffic-policy.ts";
import { type Reach, reachWithoutCertificate } from "../scope/uncertified.ts";
import type { MeshPort, MeshSubset } from "../snapshot/mesh-snapshot.ts";

/** One for each port and subset. */
export interface OutboundCluster {
  readonly name: string;
  readonly service: ScopedService;
  readonly port: MeshPort;
  readonly subset: MeshSubset | undefined;
  /** Which endpoints it has. */
  readonly reach: Reach;
  /** See `ClustersSection`. */
  readonly networks?: ForeignNetworks;
  /** The proxy's: what is near to that comes first. Missing where nothing does. */
  readonly near?: string;
}

export function outboundClusters({
  services,
  trustDomain,
  withoutCertificate,
  networks,
  locality,
}: Pick<
  ClustersSection,
  "services" | "trustDomain" | "withoutCertificate" | "networks" | "locality"
>): readonly OutboundCluster[] {
  const isBounded = trustDomain !== undefined && withoutCertificate === true;
  return targetsOf(services).map((target) => ({
    ...target,
    name: outboundClusterName(target.service.hostname, target.port.number, target.subset?.name),
    reach: isBounded ? reachWithoutCertificate(target.service, target.port, target.subset) : "all",
    ...(networks === undefined ? {} : { networks }),
    ...near(target, locality),
  }));
}

/**
 * Where an AUTO_PASSTHROUGH server leads. The gateway cannot see whether what passes is mutual TLS, so that only those
 * who take nothing else from a proxy are there (Istio: EndpointsWithMTLSFilter).
 */
export function passedClusters({
  services,
  autoPassthrough = [],
  networks,
}: Pick<GatewayClusters, "services" | "autoPassthrough" | "networks">): readonly OutboundCluster[] {
  const passed = new Set(autoPassthrough);
  return targetsOf(services.filter(({ hostname }) => passed.has(hostname))).map((target) => ({
    ...target,
    name: sniName(target.service.hostname, target.port.number, target.subset?.name),
    reach: "mutual-tls",
    ...(networks === undefined ? {} : { networks }),
  }));
}

/** Only where endpoints that fail are noticed: others would be asked for as long as they are near (Istio likewise). */
function near(
  { service, subset, port }: Pick<OutboundCluster, "service" | "subset" | "port">,
  locality: string | undefined,
): Pick<OutboundCluster, "near"> {
  if (locality === undefined) return {};
  const { outlierDetection } = portTrafficPolicy(service.rule, subset, port.number);
  return outlierDetection === undefined ? {} : { near: locality };
}

function targetsOf(services: readonly ScopedService[]): readonly Omit<OutboundCluster, "name" | "reach">[] {
  return services.flatMap((service) =>
    service.ports
      .filter((port) => port.protocol !== "udp")
      .flatMap((port) => [undefined, ...(service.rule?.subsets ?? [])].map((subset) => ({ service, port, subset }))),
  );
}
