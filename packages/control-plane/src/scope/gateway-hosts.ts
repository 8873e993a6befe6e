// For which hosts a VirtualService holds at a server of a Gateway.
import type { MeshVirtualService } from "../snapshot/mesh-snapshot.ts";
import { hostIntersection } from "../snapshot/host-match.ts";
import type { GatewayPortServer } from "./proxy-view.ts";

type BoundHosts = Pick<MeshVirtualService, "namespace" | "gateways" | "gatewayHosts">;

/** Those that both name, the narrower of each pair. */
export function sharedHosts(server: GatewayPortServer, virtualService: BoundHosts): readonly string[] {
  if (!virtualService.gateways.includes(server.gateway)) return [];
  return server.hosts.flatMap((serverHost) => {
    const pattern = hostSeenFrom(serverHost, server, virtualService.namespace);
    if (pattern === undefined) return [];
    return virtualService.gatewayHosts.flatMap((host) => hostIntersection(pattern.toLowerCase(), host) ?? []);
  });
}

/** `namespace/host` admits VirtualServices of that namespace only; `.` is the Gateway's own (Istio: Server.hosts). */
function hostSeenFrom(host: string, server: GatewayPortServer, namespace: string): string | undefined {
  const slash = host.indexOf("/");
  if (slash < 0) return host;
  const allowed = host.slice(0, slash);
  const own = server.gateway.slice(0, server.gateway.indexOf("/"));
  const admits = allowed === "*" || allowed === namespace || (allowed === "." && own === namespace);
  return admits ? host.slice(slash + 1) : undefined;
}
