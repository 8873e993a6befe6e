// Which injectors of a cluster the API server asks for a pod, and by which labels: what `tulle x check-inject` shows.
import { selects } from "@tulle/config";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { revisionLabel } from "../names.ts";

type Labels = Readonly<Record<string, string>>;

interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

interface Selector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly Requirement[];
}

interface Configuration {
  readonly metadata: { readonly name: string; readonly labels?: Labels };
  readonly webhooks?: readonly {
    readonly name: string;
    readonly rules?: readonly { readonly resources?: readonly string[] }[];
    readonly namespaceSelector?: Selector;
    readonly objectSelector?: Selector;
  }[];
}

export interface AskedWebhook {
  readonly configuration: string;
  readonly revision: string;
  readonly isAsked: boolean;
  /** The labels that decide; empty where it is not asked. */
  readonly by: string;
}

export interface LabelledPod {
  readonly namespaceLabels: Labels;
  readonly podLabels: Labels;
}

/** All that look at pods and say that they inject, of other meshes, too. */
export async function askedWebhooks(
  client: Pick<KubernetesClient, "request">,
  pod: LabelledPod,
): Promise<readonly AskedWebhook[]> {
  const { items } = await client.request<{ readonly items: readonly Configuration[] }>({
    path: "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
  });
  return items
    .filter(({ metadata }) => metadata.labels?.["app"] === "sidecar-injector")
    .map((configuration) => askedBy(configuration, pod));
}

export function askedBy({ metadata, webhooks = [] }: Configuration, pod: LabelledPod): AskedWebhook {
  const { namespaceLabels, podLabels } = pod;
  const found = webhooks.find(
    ({ rules = [], namespaceSelector = {}, objectSelector = {} }) =>
      rules.some(({ resources = [] }) => resources.includes("pods") || resources.includes("*")) &&
      matches(namespaceSelector, namespaceLabels) &&
      matches(objectSelector, podLabels),
  );
  const labels = metadata.labels ?? {};
  const by =
    found === undefined
      ? []
      : [
          ...deciding(found.namespaceSelector, namespaceLabels).map((label) => `the namespace's ${label}`),
          ...deciding(found.objectSelector, podLabels).map((label) => `the pod's ${label}`),
        ];
  return {
    configuration: metadata.name,
    revision: labels[revisionLabel] ?? labels["istio.io/rev"] ?? "",
    isAsked: found !== undefined,
    by: by.join(" and "),
  };
}

function matches({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels): boolean {
  return selects(matchLabels, labels) && matchExpressions.every((each) => holds(each, labels));
}

/** By Kubernetes' rules (LabelSelectorRequirement): what is not there is not in any list. */
function holds({ key, operator, values = [] }: Requirement, labels: Labels): boolean {
  const value = labels[key];
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    default:
      return false;
  }
}

function deciding({ matchLabels = {}, matchExpressions = [] }: Selector = {}, labels: Labels): readonly string[] {
  const positive = matchExpressions.filter(({ operator }) => operator === "In" || operator === "Exists");
  return [...Object.keys(matchLabels), ...positive.map(({ key }) => key)].map((key) => `${key}=${labels[key]}`);
}
