/**
 * IST0173: a subset that a DestinationRule names has pods among those of the Service. Only a warning: the rule comes
 * first when a version is rolled out, and nothing breaks before a route leads there.
 */
import { isBehind, selects } from "../rules/label-selector.ts";
import type { Analyzer } from "./analyzer.ts";

export const subsetWorkloads: Analyzer = {
  name: "subset-workloads",
  codes: ["IST0173"],
  *run(mesh) {
    const workloads = Map.groupBy(mesh.workloads, ({ namespace }) => namespace);
    for (const resource of mesh.list("DestinationRule")) {
      const { host, subsets = [] } = resource.spec;
      const service = mesh.servicesByHost.get(mesh.resolve(host, resource.metadata.namespace));
      if (service === undefined || subsets.length === 0) continue;
      const { namespace, name } = service.metadata;
      const behind = (workloads.get(namespace) ?? []).filter((workload) => isBehind(service, workload));
      // A Service without pods is not the rule's matter.
      if (behind.length === 0) continue;
      for (const [index, subset] of subsets.entries()) {
        if (behind.some(({ labels }) => selects(subset.labels ?? {}, labels))) continue;
        const labels = Object.entries(subset.labels ?? {}).map(([key, value]) => `${key}=${value}`);
        yield {
          code: "IST0173",
          severity: "warning",
          resource,
          path: ["spec", "subsets", index, "labels"],
          message: `no workload of the Service "${namespace}/${name}" has the labels of the subset "${subset.name}" (${labels.join(", ")}): routes that lead there answer 503`,
          suggestion: "Compare them with the labels of the pods.",
        };
      }
    }
  },
};
