/** IST0132: a VirtualService on a gateway has hosts that the gateway serves; the others would never be asked for. */
import { hostsOverlap, resolveGateway } from "../resolve-host.ts";
import type { Gateway } from "../resource.ts";
import type { Analyzer } from "./analyzer.ts";

export const gatewayHosts: Analyzer = {
  name: "gateway-hosts",
  codes: ["IST0132"],
  *run(mesh) {
    for (const resource of mesh.list("VirtualService")) {
      const { namespace } = resource.metadata;
      for (const reference of resource.spec.gateways ?? []) {
        const name = resolveGateway(reference, namespace);
        const gateway = mesh.gateways.get(name);
        if (gateway === undefined) continue;
        const served = hostsFor(gateway, namespace);
        for (const [index, host] of resource.spec.hosts.entries()) {
          const full = mesh.resolve(host, namespace);
          if (served.some((pattern) => hostsOverlap(pattern, full) || hostsOverlap(pattern, host))) continue;
          yield {
            code: "IST0132",
            resource,
            path: ["spec", "hosts", index],
            message: `host "${host}" is not among the hosts of the gateway "${name}"`,
            suggestion:
              served.length === 0
                ? `The Gateway lets in no VirtualService of the namespace "${namespace}".`
                : `The Gateway serves ${served.join(", ")}.`,
          };
        }
      }
    }
  },
};

/** The hosts of a Gateway that VirtualServices of `namespace` may take. */
function hostsFor(gateway: Gateway, namespace: string): readonly string[] {
  return gateway.spec.servers
    .flatMap((server) => server.hosts)
    .flatMap((entry) => {
      const slash = entry.indexOf("/");
      if (slash === -1) return [entry];
      const scope = entry.slice(0, slash);
      const allowed =
        scope === "*" || scope === namespace || (scope === "." && gateway.metadata.namespace === namespace);
      return allowed ? [entry.slice(slash + 1)] : [];
    });
}
