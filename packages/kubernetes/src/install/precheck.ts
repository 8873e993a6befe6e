// What stands in the way of an installation, looked at before anything is changed: the cluster's version, the rights
// of whoever installs, other meshes, kinds of other versions, and namespaces that take no pods of ours.
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { unlessMissing } from "../client/kubernetes-error.ts";
import { partOfTulle } from "./installed-labels.ts";
import { type InstalledObject, installedKinds } from "./object-kinds.ts";

export interface CheckResult {
  readonly what: string;
  readonly outcome: "good" | "warning" | "error";
  /** What was found, and what to do about it. */
  readonly message: string;
}

/** Sidecars that are init containers are there, and on, since 1.29; before, they need `nativeSidecar: "false"`. */
const nativeSidecarsSince = 29;
const oldestMinor = 27;

export interface PrecheckOptions {
  readonly client: KubernetesClient;
  readonly namespace: string;
  readonly objects: readonly InstalledObject[];
  /** Whether Istio's labels are to count. */
  readonly withIstioLabels: boolean;
}

export async function precheck(options: PrecheckOptions): Promise<readonly CheckResult[]> {
  const checks = [version, rights, otherMeshes, definitions, podSecurity];
  const results: CheckResult[] = [];
  for (const check of checks) results.push(await check(options));
  return results;
}

async function version({ client }: PrecheckOptions): Promise<CheckResult> {
  const what = "Kubernetes";
  const { gitVersion, minor } = await client.request<{ readonly gitVersion: string; readonly minor: string }>({
    path: "/version",
  });
  const number = Number.parseInt(minor, 10) || Number(/^v1\.(\d+)/.exec(gitVersion)?.[1]);
  if (number < oldestMinor) return { what, outcome: "error", message: `${gitVersion} is older than v1.${oldestMinor}` };
  if (number < nativeSidecarsSince) {
    const message = `${gitVersion} has no sidecars that are init containers: pods need sidecar.istio.io/nativeSidecar: "false"`;
    return { what, outcome: "warning", message };
  }
  return { what, outcome: "good", message: gitVersion };
}

/** Asked of the API server for each kind: an installation that stops half-way helps nobody. */
async function rights({ client, objects, namespace }: PrecheckOptions): Promise<CheckResult> {
  const missing: string[] = [];
  for (const { kind, apiVersion, plural, isNamespaced } of installedKinds) {
    if (kind === "Namespace" || !objects.some((object) => object.kind === kind)) continue;
    const [group, resource] = [apiVersion.includes("/") ? apiVersion.split("/")[0]! : "", plural];
    for (const verb of ["create", "patch"]) {
      const review = await client.request<{ readonly status?: { readonly allowed?: boolean } }>({
        method: "POST",
        path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        body: {
          apiVersion: "authorization.k8s.io/v1",
          kind: "SelfSubjectAccessReview",
          spec: { resourceAttributes: { group, resource, verb, ...(isNamespaced ? { namespace } : {}) } },
        },
      });
      if (review.status?.allowed !== true) missing.push(`${verb} ${resource}${group === "" ? "" : `.${group}`}`);
    }
  }
  const what = "Rights";
  return missing.length === 0
    ? { what, outcome: "good", message: "every object of the installation may be made" }
    : { what, outcome: "error", message: `${client.access.origin} may not ${missing.join(", ")}` };
}

interface Webhooks {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
    readonly webhooks?: readonly {
      readonly namespaceSelector?: { readonly matchExpressions?: readonly { readonly key: string }[] };
      readonly objectSelector?: { readonly matchExpressions?: readonly { readonly key: string }[] };
    }[];
  }[];
}

/** Two webhooks for one label put two proxies into a pod. */
async function otherMeshes({ client, withIstioLabels }: PrecheckOptions): Promise<CheckResult> {
  const what = "Other meshes";
  const { items } = await client.request<Webhooks>({
    path: "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
  });
  const foreign = items.filter(({ metadata }) => metadata.labels?.["app.kubernetes.io/part-of"] !== "tulle");
  const readsIstioLabels = foreign.filter(({ webhooks = [] }) =>
    webhooks.some(({ namespaceSelector, objectSelector }) =>
      [...(namespaceSelector?.matchExpressions ?? []), ...(objectSelector?.matchExpressions ?? [])].some(({ key }) =>
        /^(istio-injection|istio\.io\/rev|sidecar\.istio\.io\/inject)$/.test(key),
      ),
    ),
  );
  const names = readsIstioLabels.map(({ metadata }) => metadata.name).join(", ");
  if (readsIstioLabels.length > 0 && withIstioLabels) {
    const message = `${names} injects by Istio's labels, too: pods would get two proxies. Add --set tulled.sidecarInjectorWebhook.istioLabels=false, and label namespaces with tulle-injection=enabled`;
    return { what, outcome: "error", message };
  }
  const linkerd = foreign.find(({ metadata }) => metadata.name.startsWith("linkerd"));
  if (linkerd !== undefined) {
    const message = `${linkerd.metadata.name} injects proxies as well; no namespace should ask for both`;
    return { what, outcome: "warning", message };
  }
  const message = names === "" ? "none" : `${names} injects by Istio's labels, and Tulle by its own`;
  return { what, outcome: "good", message };
}

interface DefinitionObject {
  readonly spec: { readonly versions: readonly { readonly name: string }[] };
  readonly status?: { readonly storedVersions?: readonly string[] };
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
}

/** Objects that lie in the store in a version that is not served any more could not be read. */
async function definitions({ client, objects }: PrecheckOptions): Promise<CheckResult> {
  const what = "Kinds";
  const wrong: string[] = [];
  const foreign: string[] = [];
  let there = 0;
  for (const { kind, metadata, spec } of objects) {
    if (kind !== "CustomResourceDefinition") continue;
    const found = await unlessMissing(
      client.request<DefinitionObject>({
        path: `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${metadata.name}`,
      }),
    );
    if (found === undefined) continue;
    there += 1;
    const isOurs = found.metadata.labels?.["app.kubernetes.io/part-of"] === partOfTulle;
    if (!isOurs && metadata.name.endsWith(".istio.io")) foreign.push(metadata.name);
    const served = (spec as DefinitionObject["spec"]).versions.map(({ name }) => name);
    const lost = (found.status?.storedVersions ?? []).filter((each) => !served.includes(each));
    if (lost.length > 0)
      wrong.push(`${metadata.name} is stored as ${lost.join(", ")}, which this version does not serve`);
  }
  if (foreign.length > 0)
    wrong.push(
      `${foreign.join(", ")} belong to somebody else, who would lose them: leave base.istioCustomResources off where Istio's kinds are`,
    );
  if (wrong.length > 0) return { what, outcome: "error", message: wrong.join("; ") };
  return {
    what,
    outcome: "good",
    message: there === 0 ? "none is there yet" : `${there} are there, and stay readable`,
  };
}

interface NamespaceObject {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
}

async function podSecurity({ client, namespace, objects }: PrecheckOptions): Promise<CheckResult> {
  const what = "Pod Security";
  const found = await unlessMissing(
    client.request<NamespaceObject>({ path: `/api/v1/namespaces/${encodeURIComponent(namespace)}` }),
  );
  const level = found?.metadata.labels?.["pod-security.kubernetes.io/enforce"];
  if (objects.some(({ kind }) => kind === "DaemonSet") && level !== undefined && level !== "privileged") {
    const message = `${namespace} enforces ${level}, and the CNI plug-in's pods write to their nodes: label it pod-security.kubernetes.io/enforce=privileged`;
    return { what, outcome: "error", message };
  }
  return {
    what,
    outcome: "good",
    message: `${namespace} ${level === undefined ? "enforces no level" : `enforces ${level}`}`,
  };
}
