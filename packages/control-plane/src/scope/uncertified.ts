// What a proxy without a certificate of the mesh can reach: it came in the clear, and there is no agent beside it that
// would serve one by SDS. It speaks plain text where that is taken; what is to be encrypted by the mesh is refused, and
// never sent in the clear.
import { connectionClusterName, outboundClusterName } from "../names/resource-names.ts";
import { portTrafficPolicy } from "./port-traffic-policy.ts";
import { type MeshPort, type MeshSubset, servicePortKey } from "../snapshot/mesh-snapshot.ts";
import type { GatewayRoutes, ScopedService } from "./proxy-view.ts";

/** Part of the group of a proxy; missing for one that has a certificate. */
export interface Uncertified {
  /** See `EndpointSnapshot`. */
  readonly encryptedOnly: readonly string[];
}

/**
 * - `all`: with a certificate; without one where the rule has TLS of its own (SIMPLE, MUTUAL).
 * - `plain-text`: those that do not refuse it.
 * - `none`: the rule wants the mesh's certificate shown.
 * - `mutual-tls`: of connections that are the client's own mutual TLS: those that take it.
 */
export type Reach = "all" | "plain-text" | "none" | "mutual-tls";

export function reachWithoutCertificate(
  { rule }: ScopedService,
  port: MeshPort,
  subset: MeshSubset | undefined,
): Reach {
  switch (portTrafficPolicy(rule, subset, port.number).tls?.mode) {
    case "ISTIO_MUTUAL":
      return "none";
    case "SIMPLE":
    case "MUTUAL":
      return "all";
    default:
      return "plain-text";
  }
}

/** Clusters of which no endpoint can be reached. Where some can, the others are left out of the endpoints. */
export function refusedClusters(
  services: readonly ScopedService[],
  uncertified: Uncertified | undefined,
): Pick<GatewayRoutes, "refusedClusters"> {
  if (uncertified === undefined) return {};
  const encryptedOnly = new Set(uncertified.encryptedOnly);
  const refused = services.flatMap((service) =>
    service.ports.flatMap((port) =>
      [undefined, ...(service.rule?.subsets ?? [])]
        .filter((subset) => {
          const reach = reachWithoutCertificate(service, port, subset);
          if (reach !== "plain-text") return reach === "none";
          return encryptedOnly.has(servicePortKey(service, port.number));
        })
        .flatMap((subset) => [
          outboundClusterName(service.hostname, port.number, subset?.name),
          ...(port.protocol === "auto" ? [connectionClusterName(service.hostname, port, subset?.name)] : []),
        ]),
    ),
  );
  return refused.length === 0 ? {} : { refusedClusters: refused };
}
