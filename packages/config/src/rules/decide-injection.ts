// Whether a pod gets a sidecar, by the rules of Istio's webhook, in both spellings of every name. Whoever starts pods,
// and the analysis that misses a sidecar, ask here.

export interface InjectionInput {
  readonly namespace: string;
  readonly namespaceLabels: Readonly<Record<string, string>>;
  readonly podLabels: Readonly<Record<string, string>>;
  readonly podAnnotations: Readonly<Record<string, string>>;
  readonly hostNetwork: boolean;
}

export type Injection = "sidecar" | "gateway" | "none";

/** Namespaces of the platform itself are never injected (Istio: `IgnoredNamespaces`). */
const ignoredNamespaces = new Set(["kube-system", "kube-public", "kube-node-lease", "local-path-storage"]);

/**
 * Order: host network and platform namespaces never; a disabled namespace never; the pod's own word; the namespace's
 * label.
 */
export function decideInjection(input: InjectionInput): Injection {
  if (input.hostNetwork || ignoredNamespaces.has(input.namespace)) return "none";
  const ofNamespace =
    input.namespaceLabels["tulle-injection"] ??
    input.namespaceLabels["istio-injection"] ??
    (input.namespaceLabels["istio.io/rev"] === undefined ? undefined : "enabled");
  if (ofNamespace === "disabled") return "none";
  const ofPod = podChoice(input);
  if (ofPod === false || (ofPod === undefined && ofNamespace !== "enabled")) return "none";
  return templateOf(input.podAnnotations) === "gateway" ? "gateway" : "sidecar";
}

/** The label beats the annotation. Values that mean yes are Istio's: y, yes, true, on. */
function podChoice(input: InjectionInput): boolean | undefined {
  for (const source of [input.podLabels, input.podAnnotations]) {
    const value = source["sidecar.tulle.io/inject"] ?? source["sidecar.istio.io/inject"];
    if (value !== undefined && value !== "") return ["y", "yes", "true", "on"].includes(value.toLowerCase());
  }
  return undefined;
}

function templateOf(annotations: Readonly<Record<string, string>>): string | undefined {
  return annotations["inject.tulle.io/templates"] ?? annotations["inject.istio.io/templates"];
}
