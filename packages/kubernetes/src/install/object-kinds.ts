// The kinds of objects that an installation is made of: where the API server has them, in the order in which they are
// made. They are removed the other way round.
import type { Fields } from "./values.ts";

export interface InstalledObject extends Fields {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [field: string]: unknown };
}

interface InstalledKind {
  readonly kind: string;
  readonly apiVersion: string;
  readonly plural: string;
  readonly isNamespaced: boolean;
}

const rbac = "rbac.authorization.k8s.io/v1";
const admission = "admissionregistration.k8s.io/v1";

const row = (kind: string, apiVersion: string, plural: string, isNamespaced = true): InstalledKind => ({
  kind,
  apiVersion,
  plural,
  isNamespaced,
});

export const installedKinds: readonly InstalledKind[] = [
  row("Namespace", "v1", "namespaces", false),
  row("CustomResourceDefinition", "apiextensions.k8s.io/v1", "customresourcedefinitions", false),
  row("ClusterRole", rbac, "clusterroles", false),
  row("ClusterRoleBinding", rbac, "clusterrolebindings", false),
  row("ServiceAccount", "v1", "serviceaccounts"),
  row("Role", rbac, "roles"),
  row("RoleBinding", rbac, "rolebindings"),
  row("ConfigMap", "v1", "configmaps"),
  row("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies"),
  row("PersistentVolumeClaim", "v1", "persistentvolumeclaims"),
  row("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets"),
  row("Service", "v1", "services"),
  row("DaemonSet", "apps/v1", "daemonsets"),
  row("Deployment", "apps/v1", "deployments"),
  row("HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers"),
  // Last: from here on pods are held up while nobody answers for them.
  row("ValidatingWebhookConfiguration", admission, "validatingwebhookconfigurations", false),
  row("MutatingWebhookConfiguration", admission, "mutatingwebhookconfigurations", false),
];

export function inOrder(objects: readonly InstalledObject[]): readonly InstalledObject[] {
  const rank = ({ kind }: InstalledObject): number => installedKinds.findIndex((each) => each.kind === kind);
  return objects.toSorted((a, b) => rank(a) - rank(b));
}

export function pathOfObject({ kind, metadata: { name, namespace } }: InstalledObject): string {
  return `${collectionOf(kind, namespace)}/${encodeURIComponent(name)}`;
}

/** Of one namespace, or of all. */
export function collectionOf(kind: string, namespace?: string): string {
  const found = installedKinds.find((each) => each.kind === kind);
  if (found === undefined) throw new Error(`${kind} is no kind of an installation`);
  const { apiVersion, plural, isNamespaced } = found;
  const group = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return isNamespaced && namespace !== undefined ? `${group}/namespaces/${namespace}/${plural}` : `${group}/${plural}`;
}

/** As people write it: `Deployment tulle-system/tulled`. */
export function objectText({ kind, metadata: { name, namespace } }: InstalledObject): string {
  return namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}
