/**
 * IST0102: a namespace with workloads says whether they get a sidecar. IST0123: it says so once, or at least the same
 * by every label.
 */
import type { Namespace } from "../kinds/resource.ts";
import type { Analyzer, Discovery, Workload } from "./analyzer.ts";

/** Say yes or no. */
const wordLabels = ["tulle-injection", "istio-injection"];
/** The first that is there decides. */
const namespaceLabels = [...wordLabels, "istio.io/rev"];
/**
 * The second is Istio's word for meshes without sidecars; it says nothing here, and something else than the others
 * there.
 */
const otherLabels = ["istio.io/rev", "istio.io/dataplane-mode"];
const podLabels = ["sidecar.tulle.io/inject", "sidecar.istio.io/inject", "istio.io/rev"];
const templateAnnotations = ["inject.tulle.io/templates", "inject.istio.io/templates"];

export const namespaceInjection: Analyzer = {
  name: "namespace-injection",
  codes: ["IST0102", "IST0123"],
  *run(mesh) {
    for (const resource of mesh.list("Namespace")) {
      const { name, labels = {} } = resource.metadata;
      yield* severalLabels(resource);
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

/** `istio-injection` beside an equal `tulle-injection` is a manifest for both meshes. */
function* severalLabels(resource: Namespace): Generator<Discovery> {
  const { name, labels = {} } = resource.metadata;
  const words = wordLabels.filter((label) => labels[label] !== undefined);
  const agree = new Set(words.map((label) => labels[label])).size < 2;
  const isOff = labels[words[0] ?? ""] === "disabled";
  const others = otherLabels.filter((label) => labels[label] !== undefined);
  const said = [...(agree ? words.slice(0, 1) : words), ...(agree && isOff ? [] : others)];
  if (said.length < 2) return;
  const decides = namespaceLabels.find((label) => labels[label] !== undefined)!;
  yield {
    code: "IST0123",
    resource,
    path: ["metadata", "labels"],
    message: `the namespace "${name}" has several labels about sidecars (${said.map((label) => `${label}=${labels[label]}`).join(", ")}), and "${decides}" alone decides`,
    suggestion: "Keep one of them.",
  };
}

function decidesItself({ labels, annotations }: Workload): boolean {
  return (
    podLabels.some((name) => labels[name] !== undefined || annotations[name] !== undefined) ||
    templateAnnotations.some((name) => annotations[name] !== undefined)
  );
}
