/** IST0101: the gateways that a VirtualService names exist. */
import { nearestName } from "../findings/nearest-name.ts";
import { resolveGateway } from "../rules/resolve-host.ts";
import type { Analyzer } from "./analyzer.ts";

export const gatewayReferences: Analyzer = {
  name: "gateway-references",
  codes: ["IST0101"],
  *run(mesh) {
    for (const resource of mesh.list("VirtualService")) {
      for (const [index, reference] of (resource.spec.gateways ?? []).entries()) {
        const gateway = resolveGateway(reference, resource.metadata.namespace);
        if (gateway === "mesh" || mesh.gateways.has(gateway)) continue;
        const name = gateway.split("/")[1];
        const elsewhere = [...mesh.gateways.keys()].find((known) => known.split("/")[1] === name);
        const near = elsewhere ?? nearestName(gateway, mesh.gateways.keys());
        yield {
          code: "IST0101",
          resource,
          path: ["spec", "gateways", index],
          message: `gateway "${gateway}" not found`,
          suggestion: near === undefined ? "Add that Gateway." : `Did you mean "${near}"?`,
        };
      }
    }
  },
};
