/**
 * IST0101, IST0162: a Gateway chooses pods that exist, and each of its ports is a port of the Service in front of them
 * – nobody could reach it otherwise.
 */
import type { Gateway } from "../kinds/resource.ts";
import { isBehind } from "../rules/label-selector.ts";
import type { AnalyzedMesh, Analyzer, Discovery, Workload } from "./analyzer.ts";

export const gatewayWorkloads: Analyzer = {
  name: "gateway-workloads",
  codes: ["IST0101", "IST0162"],
  *run(mesh) {
    for (const resource of mesh.list("Gateway")) {
      const workloads = mesh.workloadsOf(resource);
      if (workloads.length > 0) yield* checkPorts(mesh, resource, workloads);
      else {
        const selector = Object.entries(resource.spec.selector ?? {}).map(([key, value]) => `${key}=${value}`);
        yield {
          code: "IST0101",
          resource,
          path: ["spec", "selector"],
          message: `no workload has the labels of the selector (${selector.join(", ")})`,
          suggestion: "Compare them with the labels of the gateway's pods.",
        };
      }
    }
  },
};

function* checkPorts(mesh: AnalyzedMesh, resource: Gateway, workloads: readonly Workload[]): Generator<Discovery> {
  const services = mesh.list("Service").filter((service) => workloads.some((workload) => isBehind(service, workload)));
  // Without any Service the pods are reached by other means (a host port), which nothing here knows of.
  if (services.length === 0) return;
  const ports = new Set(services.flatMap((service) => service.spec.ports.map(({ port }) => port)));
  for (const [index, server] of resource.spec.servers.entries()) {
    if (ports.has(server.port.number)) continue;
    const names = services.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).join(", ");
    yield {
      code: "IST0162",
      resource,
      path: ["spec", "servers", index, "port", "number"],
      message: `port ${server.port.number} is not a port of the gateway's Service (${names})`,
      suggestion: `Add it to the Service, or use one of its ports: ${[...ports].join(", ")}.`,
    };
  }
}
