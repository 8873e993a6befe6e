// Whether an installation is healthy: its control planes run and one of them leads, its kinds are those that they
// read, its webhooks answer and are believed, and workloads find what they need in their namespaces and on their
// nodes. Nothing is changed: what webhooks are asked for is a rehearsal.
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { KubernetesError, unlessMissing } from "../client/kubernetes-error.ts";
import { injectedContainers, leaderLease, revisionLabel, rootsConfigMap } from "../names.ts";
import { customResourceDefinitions } from "./custom-resources.ts";
import { partOfTulle } from "./installed-labels.ts";
import { collectionOf } from "./object-kinds.ts";
import type { CheckResult } from "./precheck.ts";
import { collectionPath, objectPath } from "../store/collections.ts";

export interface CheckOptions {
  readonly client: Pick<KubernetesClient, "request">;
  /** Of the control plane. */
  readonly namespace: string;
  readonly revision: string;
  /** Of whoever asks. */
  readonly version: string;
}

interface Listed {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
  };
}

const good = (what: string, message: string): CheckResult => ({ what, outcome: "good", message });
const warning = (what: string, message: string): CheckResult => ({ what, outcome: "warning", message });
const wrong = (what: string, message: string): CheckResult => ({ what, outcome: "error", message });
/** Of names in one message. */
const mostNamed = 5;

export async function checkInstallation(options: CheckOptions): Promise<readonly CheckResult[]> {
  const checks: readonly [what: string, check: (options: CheckOptions, what: string) => Promise<CheckResult>][] = [
    ["Control plane", controlPlane],
    ["Leader", leader],
    ["Kinds", kinds],
    ["Webhooks' certificates", webhookRoots],
    ["Injection", injection],
    ["Validation", validation],
    ["Roots in namespaces", rootsInNamespaces],
    ["CNI plug-in", cniPlugin],
  ];
  const results: CheckResult[] = [];
  for (const [what, check] of checks) {
    try {
      results.push(await check(options, what));
    } catch (error) {
      if (!(error instanceof KubernetesError) || error.code === 0) throw error;
      results.push(error.code === 403 ? warning(what, `not looked at: ${error.message}`) : wrong(what, error.message));
    }
  }
  return results;
}

async function controlPlane(
  { client, namespace, revision, version }: CheckOptions,
  what: string,
): Promise<CheckResult> {
  const { items } = await client.request<{
    readonly items: readonly (Listed & {
      readonly spec: { readonly replicas?: number };
      readonly status?: { readonly readyReplicas?: number; readonly updatedReplicas?: number };
    })[];
  }>({
    path: collectionOf("Deployment", namespace),
    query: { labelSelector: `app=tulled,${revisionLabel}=${revision}` },
  });
  const [deployment] = items;
  if (deployment === undefined) {
    return wrong(what, `there is none of the revision ${revision} in ${namespace}: tulle install brings one there`);
  }
  const { replicas = 1 } = deployment.spec;
  const { readyReplicas = 0, updatedReplicas = 0 } = deployment.status ?? {};
  const { name } = deployment.metadata;
  if (readyReplicas < replicas || updatedReplicas < replicas) {
    const look = `look at it: kubectl describe pods -n ${namespace} -l app=tulled`;
    return wrong(
      what,
      `${readyReplicas} of ${replicas} pods of ${name} are ready, ${updatedReplicas} are new; ${look}`,
    );
  }
  const installed = deployment.metadata.labels?.["app.kubernetes.io/version"] ?? "";
  if (installed !== version) {
    return warning(
      what,
      `${name} is of version ${installed}, and this command of ${version}: tulle upgrade brings it along`,
    );
  }
  return good(what, `${readyReplicas} of ${replicas} pods of ${name} are ready, version ${installed}`);
}

async function leader({ client, namespace }: CheckOptions, what: string): Promise<CheckResult> {
  const lease = await unlessMissing(
    client.request<{ readonly spec?: { readonly holderIdentity?: string } }>({
      path: `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases/${leaderLease}`,
    }),
  );
  const holder = lease?.spec?.holderIdentity ?? "";
  const pod = holder.split("_")[0]!;
  if (pod === "") return wrong(what, "none leads: neither roots nor statuses are written, and no roll-out goes on");
  const found = await unlessMissing(client.request<Listed>({ path: objectPath("v1", "Pod", namespace, pod) }));
  return found === undefined
    ? warning(what, `${pod}, which is no pod any more: another follows within 15 seconds`)
    : good(what, pod);
}

async function kinds({ client }: CheckOptions, what: string): Promise<CheckResult> {
  interface Definition extends Listed {
    readonly spec: { readonly versions: readonly { readonly name: string }[] };
    readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
  }
  const { items } = await client.request<{ readonly items: readonly Definition[] }>({
    path: collectionOf("CustomResourceDefinition"),
  });
  const there = new Map(items.map((each) => [each.metadata.name, each]));
  const problems = customResourceDefinitions().flatMap(({ metadata, spec }) => {
    const found = there.get(metadata.name);
    if (found === undefined) return [`${metadata.name} is missing`];
    const served = found.spec.versions.map(({ name }) => name);
    const lacking = (spec as Definition["spec"]).versions
      .map(({ name }) => name)
      .filter((each) => !served.includes(each));
    if (lacking.length > 0) return [`${metadata.name} has no ${lacking.join(", ")}`];
    const isServed = found.status?.conditions?.some(({ type, status }) => type === "Established" && status === "True");
    return isServed === true ? [] : [`${metadata.name} is not served`];
  });
  if (problems.length > 0) return wrong(what, `${some(problems)}: tulle upgrade brings them along`);
  return good(what, `${customResourceDefinitions().length} are there, in the versions that this command knows`);
}

async function rootsOf({ client, namespace }: CheckOptions): Promise<string> {
  const path = objectPath("v1", "ConfigMap", namespace, rootsConfigMap.name);
  const found = await unlessMissing(client.request<{ readonly data?: Readonly<Record<string, string>> }>({ path }));
  return (found?.data?.[rootsConfigMap.key] ?? "").trim();
}

async function webhookRoots(options: CheckOptions, what: string): Promise<CheckResult> {
  interface Configuration extends Listed {
    readonly webhooks?: readonly { readonly name: string; readonly clientConfig: { readonly caBundle?: string } }[];
  }
  const roots = await rootsOf(options);
  if (roots === "") return wrong(what, `the roots are not in ${options.namespace}/${rootsConfigMap.name}`);
  const lists = await Promise.all(
    ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"].map((kind) =>
      options.client.request<{ readonly items: readonly Configuration[] }>({
        path: collectionOf(kind),
        query: { labelSelector: `app.kubernetes.io/part-of=${partOfTulle},${revisionLabel}=${options.revision}` },
      }),
    ),
  );
  const all = lists.flatMap(({ items }) => items);
  if (all.length === 0)
    return wrong(what, `no webhook of the revision ${options.revision} is there: nothing is injected`);
  const pems = roots.split(/(?<=-----END CERTIFICATE-----)\s*/).filter((each) => each !== "");
  const unbelieving = all.filter(({ webhooks = [] }) =>
    webhooks.some(({ clientConfig }) => {
      const bundle = Buffer.from(clientConfig.caBundle ?? "", "base64").toString("utf8");
      return !pems.every((pem) => bundle.includes(pem.trim()));
    }),
  );
  const names = (which: readonly Listed[]): string => some(which.map(({ metadata }) => metadata.name));
  return unbelieving.length > 0
    ? wrong(
        what,
        `${names(unbelieving)} do not believe the mesh's roots; the leader writes them: tulle logs control-plane`,
      )
    : good(what, `${names(all)} believe the mesh's roots`);
}

/** A pod that is asked for and not made. */
async function injection({ client, namespace, revision }: CheckOptions, what: string): Promise<CheckResult> {
  const labels = {
    "sidecar.tulle.io/inject": "true",
    ...(revision === "default" ? {} : { [revisionLabel]: revision }),
  };
  interface Made {
    readonly spec: {
      readonly containers: readonly Listed["metadata"][];
      readonly initContainers?: readonly Listed["metadata"][];
    };
  }
  const made = await rehearsed(
    client.request<Made>({
      method: "POST",
      path: collectionPath("v1", "Pod", namespace),
      query: { dryRun: "All" },
      body: {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { generateName: "tulle-check-", labels },
        spec: { containers: [{ name: "main", image: "tulle-check" }] },
      },
    }),
  );
  if (typeof made === "string") return wrong(what, made);
  const { containers, initContainers = [] } = made.spec;
  return [...containers, ...initContainers].some(({ name }) => name === injectedContainers.proxy)
    ? good(what, "a pod that asks for its proxy gets it")
    : wrong(what, `a pod of ${namespace} that asks for its proxy gets none: no webhook was asked`);
}

/** A resource that cannot be right, and so is refused by who understands it. */
async function validation({ client, namespace }: CheckOptions, what: string): Promise<CheckResult> {
  const spec = { hosts: ["tulle-check"], http: [{ match: [{ uri: { regex: "(" } }], route: [] }] };
  const made = await rehearsed(
    client.request<object>({
      method: "POST",
      path: collectionPath("networking.tulle.io/v1", "VirtualService", namespace),
      query: { dryRun: "All" },
      body: {
        apiVersion: "networking.tulle.io/v1",
        kind: "VirtualService",
        metadata: { generateName: "tulle-check-" },
        spec,
      },
    }),
  );
  if (typeof made !== "string")
    return warning(what, "a resource that is wrong is taken: its webhook is off, or lets it pass");
  return /denied the request/.test(made) ? good(what, "a resource that is wrong is refused") : wrong(what, made);
}

/** What was made, or why not. */
async function rehearsed<T>(asked: Promise<T>): Promise<T | string> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof KubernetesError) || error.code === 0) throw error;
    const isRight = error.code === 403 && !/denied the request|failed calling webhook/.test(error.message);
    if (isRight) throw error;
    return error.message;
  }
}

async function rootsInNamespaces(options: CheckOptions, what: string): Promise<CheckResult> {
  interface Roots extends Listed {
    readonly data?: Readonly<Record<string, string>>;
  }
  const roots = await rootsOf(options);
  const [namespaces, maps] = await Promise.all([
    options.client.request<{ readonly items: readonly Listed[] }>({ path: collectionOf("Namespace") }),
    options.client.request<{ readonly items: readonly Roots[] }>({
      path: "/api/v1/configmaps",
      query: { fieldSelector: `metadata.name=${rootsConfigMap.name}` },
    }),
  ]);
  const found = new Map(
    maps.items.map(({ metadata, data }) => [metadata.namespace, data?.[rootsConfigMap.key]?.trim()]),
  );
  const staying = namespaces.items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const without = staying.map(({ metadata }) => metadata.name).filter((name) => found.get(name) !== roots);
  return without.length > 0
    ? wrong(
        what,
        `${some(without)} have not the roots of now, and their pods get no certificate: see whether one leads`,
      )
    : good(what, `all ${staying.length} namespaces have them`);
}

async function cniPlugin({ client, namespace }: CheckOptions, what: string): Promise<CheckResult> {
  const { items } = await client.request<{
    readonly items: readonly (Listed & {
      readonly status?: { readonly desiredNumberScheduled?: number; readonly numberReady?: number };
    })[];
  }>({
    path: collectionOf("DaemonSet", namespace),
    query: { labelSelector: `app.kubernetes.io/part-of=${partOfTulle}` },
  });
  const [plugin] = items;
  if (plugin === undefined) return good(what, "none is installed: pods capture by themselves");
  const { desiredNumberScheduled: wanted = 0, numberReady = 0 } = plugin.status ?? {};
  return numberReady < wanted
    ? wrong(what, `${numberReady} of ${wanted} nodes are ready: pods of the others wait until they are`)
    : good(what, `${numberReady} of ${wanted} nodes are ready`);
}

function some(names: readonly string[]): string {
  const rest = names.length - mostNamed;
  return `${names.slice(0, mostNamed).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}
