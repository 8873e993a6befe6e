/** IST0132: a VirtualService on a gateway has hosts that the gateway serves; the others would never be asked for. */
import { hostsOverlap, resolveGateway } from "../rules/resolve-host.ts";
import type { Gateway } from "../kinds/resource.ts";
import type { Analyzer } from "./analyzer.ts";

export const gatewayHosts: Analyzer = {
  name: "gateway-hosts",
  codes: ["IST0132"],
  *run(mesh) {
    for (const resource of mesh.list("VirtualService")) {
      const { namespace } = resource.metadata;
      const names = (resource.spec.gateways ?? []).map((reference) => resolveGateway(reference, namespace));
      const gateways = names.filter((name) => name !== "mesh").map((name) => mesh.gateways.get(name));
      // What a Gateway serves that is missing, or that was refused, nobody knows.
      if (gateways.length === 0 || gateways.some((each) => each === undefined || mesh.isDraft(each))) continue;
      const served = gateways.map((each) => hostsFor(each!, namespace));
      const serves = (patterns: readonly string[], host: string): boolean => {
        const full = mesh.resolve(host, namespace);
        return patterns.some((pattern) => hostsOverlap(pattern, full) || hostsOverlap(pattern, host));
      };
      const all = [...new Set(served.flat())];
      const isUnused = served.map((patterns) => !resource.spec.hosts.some((host) => serves(patterns, host)));
      for (const [index, host] of resource.spec.hosts.entries()) {
        if (serves(all, host)) continue;
        const list = names.filter((name) => name !== "mesh").map((name) => `"${name}"`);
        yield {
          code: "IST0132",
          resource,
          path: ["spec", "hosts", index],
          message: `host "${host}" is not among the hosts of the ${list.length === 1 ? "gateway" : "gateways"} ${list.join(", ")}`,
          suggestion: servedText(all, namespace),
        };
      }
      // Where every host has a gateway, one that serves none of them is named for nothing.
      if (resource.spec.hosts.some((host) => !serves(all, host))) continue;
      const ofGateways = names.flatMap((name, index) => (name === "mesh" ? [] : [index]));
      for (const [position, index] of ofGateways.entries()) {
        if (isUnused[position] !== true) continue;
        yield {
          code: "IST0132",
          resource,
          path: ["spec", "gateways", index],
          message: `the gateway "${names[index]!}" serves none of the hosts`,
          suggestion: servedText(served[position]!, namespace),
        };
      }
    }
  },
};

function servedText(served: readonly string[], namespace: string): string {
  return served.length === 0
    ? `The Gateway lets in no VirtualService of the namespace "${namespace}".`
    : `The Gateway serves ${served.join(", ")}.`;
}

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
