/** IST0102: a namespace with workloads says whether they get a sidecar. */
import type { Analyzer, Workload } from "./analyzer.ts";

const namespaceLabels = ["tulle-injection", "istio-injection", "istio.io/rev"];
const podLabels = ["sidecar.tulle.io/inject", "sidecar.istio.io/inject", "istio.io/rev"];
const templateAnnotations = ["inject.tulle.io/templates", "inject.istio.io/templates"];

export const namespaceInjection: Analyzer = {
  name: "namespace-injection",
  codes: ["IST0102"],
  *run(mesh) {
    for (const resource of mesh.list("Namespace")) {
      const { name, labels = {} } = resource.metadata;
      if (namespaceLabels.some((label) => labels[label] !== undefined)) continue;
      if (!mesh.workloads.some((workload) => workload.namespace === name && !decidesItself(workload))) continue;
      yield {
        code: "IST0102",
        resource,
        path: ["metadata"],
        message: `the namespace "${name}" does not say whether its workloads get a sidecar; they get none`,
        suggestion: "Label it tulle-injection: enabled, or disabled if that is meant.",
      };
    }
  },
};

function decidesItself({ labels, annotations }: Workload): boolean {
  return (
    podLabels.some((name) => labels[name] !== undefined || annotations[name] !== undefined) ||
    templateAnnotations.some((name) => annotations[name] !== undefined)
  );
}
