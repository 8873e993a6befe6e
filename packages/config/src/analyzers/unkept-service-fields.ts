/**
 * TUL0001: what a Service says and local workloads are not given. SCTP is led by no proxy and no node; `externalIPs`
 * would let a Service take any address of the world from all pods, and lead nowhere but into a network (networks.md).
 */
import { meshNetworksOf } from "../mesh-config/mesh-networks.ts";
import { leadsIntoNetwork } from "../rules/network-labels.ts";
import { serviceHost } from "../rules/resolve-host.ts";
import type { Analyzer } from "./analyzer.ts";

export const unkeptServiceFields: Analyzer = {
  name: "unkept-service-fields",
  codes: ["TUL0001"],
  *run(mesh) {
    // Elsewhere the platform's own nodes keep them.
    if (mesh.options.networkMode === undefined) return;
    const networks = Object.values(meshNetworksOf(mesh.list("ConfigMap")).networks ?? {});
    const gateways = new Set(
      networks.flatMap((network) => network.gateways ?? []).map((each) => each.registryServiceName),
    );
    for (const resource of mesh.list("Service")) {
      const { externalIPs = [], ports } = resource.spec;
      const { name, namespace } = resource.metadata;
      const isGateway = leadsIntoNetwork(resource) !== undefined || gateways.has(serviceHost(name, namespace));
      if (externalIPs.length > 0 && !isGateway) {
        yield {
          code: "TUL0001",
          resource,
          path: ["spec", "externalIPs"],
          message: `nothing leads ${externalIPs.join(" and ")} to the Service: connections go to whoever has the address`,
          suggestion: "Publish a port of a gateway, or write a ServiceEntry for the address.",
        };
      }
      for (const [index, { port, protocol }] of ports.entries()) {
        if (protocol !== "SCTP") continue;
        yield {
          code: "TUL0001",
          resource,
          path: ["spec", "ports", index, "protocol"],
          message: `port ${port} speaks SCTP, which nothing leads to the Service's pods`,
          suggestion: "Call the pods by their own addresses.",
        };
      }
    }
  },
};
