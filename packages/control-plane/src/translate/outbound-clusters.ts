// Which clusters a proxy has toward the mesh: what is made of Services is made from this list, clusters and endpoints
// alike.
import { outboundClusterName } from "../names/resource-names.ts";
import type { ClustersSection, ScopedService } from "../scope/proxy-view.ts";
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
}

/** Its endpoints are sent, and not looked up by the proxy. */
export function hasSentEndpoints({ service }: OutboundCluster): boolean {
  return service.entry?.lookedUp === undefined;
}

export function outboundClusters({
  services,
  trustDomain,
  withoutCertificate,
}: Pick<ClustersSection, "services" | "trustDomain" | "withoutCertificate">): readonly OutboundCluster[] {
  const isBounded = trustDomain !== undefined && withoutCertificate === true;
  return services.flatMap((service) =>
    service.ports
      .filter((port) => port.protocol !== "udp")
      .flatMap((port) =>
        [undefined, ...(service.rule?.subsets ?? [])].map((subset) => ({
          name: outboundClusterName(service.hostname, port.number, subset?.name),
          service,
          port,
          subset,
          reach: isBounded ? reachWithoutCertificate(service, port, subset) : "all",
        })),
      ),
  );
}
