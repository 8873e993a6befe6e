// Whether a pod gets a proxy, by the rules of Istio's webhook, in both spellings of every name. Whoever starts pods,
// the webhook of a cluster, and the analysis that misses a sidecar ask here. docs/injection.md says it to users.

export interface InjectionInput {
  readonly namespace: string;
  readonly namespaceLabels: Readonly<Record<string, string>>;
  readonly podLabels: Readonly<Record<string, string>>;
  readonly podAnnotations: Readonly<Record<string, string>>;
  readonly hostNetwork: boolean;
  /**
   * Names that the control plane answers to (its revision, and the tags that lead to it), `default` among them where it
   * is the one for `tulle-injection=enabled`. Undefined where there is one control plane, which takes every name.
   */
  readonly revisions?: ReadonlySet<string>;
  /** What holds where no label says anything: nothing is injected, unless files are injected by hand. */
  readonly injectsUnlabelled?: boolean;
}

export type Injection = "sidecar" | "gateway" | "none";

export interface ExplainedInjection {
  readonly injection: Injection;
  /** A sentence's end, behind "it is injected because" or "it is not injected because". */
  readonly reason: string;
  /** Where labels contradict each other: which one counts. */
  readonly warnings: readonly string[];
}

export const defaultRevision = "default";

/** Namespaces of the platform itself are never injected (Istio: `IgnoredNamespaces`). */
const ignoredNamespaces = new Set(["kube-system", "kube-public", "kube-node-lease", "local-path-storage"]);

const namespaceNames = ["tulle-injection", "istio-injection"] as const;
const revisionNames = ["tulle.io/rev", "istio.io/rev"] as const;
const podNames = ["sidecar.tulle.io/inject", "sidecar.istio.io/inject"] as const;

/**
 * Order: host network and platform namespaces never; the namespace's `…-injection`; the namespace's revision; the pod's
 * own word and revision. A pod may refuse what its namespace asks for, and ask where its namespace says nothing.
 */
export function decideInjection(input: InjectionInput): Injection {
  return explainInjection(input).injection;
}

export function explainInjection(input: InjectionInput): ExplainedInjection {
  const warnings: string[] = [];
  const { injects, reason } = decide(input, warnings);
  const templates = templateNames(input.podAnnotations) ?? [];
  const injection = !injects ? "none" : templates.includes("gateway") ? "gateway" : "sidecar";
  return { injection, reason, warnings };
}

/** Names of the templates that a pod asks for; undefined where it does not say. */
export function templateNames(annotations: Readonly<Record<string, string>>): readonly string[] | undefined {
  const text = annotations["inject.tulle.io/templates"] ?? annotations["inject.istio.io/templates"];
  return text?.split(",").map((name) => name.trim());
}

interface Decision {
  readonly injects: boolean;
  readonly reason: string;
}

const no = (reason: string): Decision => ({ injects: false, reason });

function decide(input: InjectionInput, warnings: string[]): Decision {
  const { namespace, namespaceLabels, podLabels } = input;
  if (input.hostNetwork) return no("it uses the network of its node (hostNetwork)");
  if (ignoredNamespaces.has(namespace)) return no(`the namespace ${namespace} is one of the platform`);
  const ofNamespace = first("the namespace", namespaceLabels, namespaceNames, warnings);
  const revision = first("the namespace", namespaceLabels, revisionNames, warnings);
  if (ofNamespace !== undefined && ofNamespace.value !== "enabled") {
    if (ofNamespace.value !== "disabled")
      warnings.push(
        `the namespace's label ${text(ofNamespace)} is neither "enabled" nor "disabled": nothing is injected`,
      );
    return no(`its namespace has the label ${text(ofNamespace)}`);
  }
  if (ofNamespace !== undefined && revision !== undefined && revision.value !== defaultRevision)
    warnings.push(`the namespace has ${text(ofNamespace)} and ${text(revision)}: the first counts`);
  const ofPod = podChoice(input, warnings);
  if (ofPod !== undefined && !isYes(ofPod.value)) return no(`the pod has ${text(ofPod)}`);
  const podRevision = first("the pod", podLabels, revisionNames, warnings);
  if (ofNamespace !== undefined || revision !== undefined) {
    const wanted = ofNamespace === undefined ? revision! : { ...ofNamespace, value: defaultRevision };
    if (podRevision !== undefined && podRevision.value !== wanted.value)
      warnings.push(`the pod has ${text(podRevision)}, its namespace ${text(ofNamespace ?? revision!)}: that counts`);
    return ofRevision(input, wanted.value, `its namespace has the label ${text(ofNamespace ?? revision!)}`);
  }
  if (ofPod !== undefined)
    return ofRevision(input, podRevision?.value ?? defaultRevision, `the pod has ${text(ofPod)}`);
  if (podRevision !== undefined) return ofRevision(input, podRevision.value, `the pod has ${text(podRevision)}`);
  return input.injectsUnlabelled === true
    ? { injects: true, reason: "nothing says otherwise" }
    : no("neither its namespace nor the pod itself asks for a proxy");
}

function ofRevision({ revisions }: InjectionInput, wanted: string, reason: string): Decision {
  if (revisions === undefined || revisions.has(wanted)) return { injects: true, reason };
  return no(`${reason}, which is for the revision ${JSON.stringify(wanted)}`);
}

interface Said {
  readonly name: string;
  readonly value: string;
}

const text = ({ name, value }: Said): string => `${name}=${JSON.stringify(value)}`;

/** Tulle's own spelling counts where both are there. */
function first(
  whose: string,
  source: Readonly<Record<string, string>>,
  names: readonly string[],
  warnings: string[],
): Said | undefined {
  const said = names.flatMap((name): readonly Said[] => {
    const value = source[name];
    return value === undefined || value === "" ? [] : [{ name, value }];
  });
  const [winner, other] = said;
  if (winner !== undefined && other !== undefined && winner.value !== other.value)
    warnings.push(`${whose} has ${text(winner)} and ${text(other)}: the first counts`);
  return winner;
}

/** The label beats the annotation. */
function podChoice({ podLabels, podAnnotations }: InjectionInput, warnings: string[]): Said | undefined {
  const label = first("the pod", podLabels, podNames, warnings);
  const annotation = first("the pod", podAnnotations, podNames, warnings);
  if (label !== undefined && annotation !== undefined && isYes(label.value) !== isYes(annotation.value))
    warnings.push(`the pod has the label ${text(label)} and the annotation ${text(annotation)}: the label counts`);
  return label ?? annotation;
}

/** Values that mean yes are Istio's; every other one means no. */
function isYes(value: string): boolean {
  return ["y", "yes", "true", "on"].includes(value.toLowerCase());
}
