// Brings an installation's objects into a cluster, in an order in which nothing is held up: kinds before what is of
// them, the control plane before the webhooks that ask it, and those before the pods that they inject.
import { setTimeout as delay } from "node:timers/promises";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { KubernetesError } from "../client/kubernetes-error.ts";
import { partOfTulle } from "./installed-labels.ts";
import { type InstalledObject, inOrder, objectText, pathOfObject } from "./object-kinds.ts";
import { type Workload, workloadTrouble, workloadUnready } from "./workload-readiness.ts";

/** Under which the API server keeps who has set a field. */
/** The name under which the API server keeps which fields an installation has set. */
export const installManager = "tulle-install";
const pollMs = 500;

export interface InstallOptions {
  readonly client: KubernetesClient;
  readonly namespace: string;
  readonly objects: readonly InstalledObject[];
  /** The API server says what it would do, and does not. */
  readonly dryRun: boolean;
  readonly timeoutMs: number;
  /** Lines for whoever waits. */
  readonly tell: (line: string) => void;
}

/** In words for whoever installs; the message says what was waited for, and why it did not come. */
export class InstallFailure extends Error {
  override readonly name = "InstallFailure";
}

export async function installObjects(options: InstallOptions): Promise<void> {
  const { namespace, dryRun, tell } = options;
  const objects = inOrder(options.objects);
  const isNew = !(await ensureNamespace(options));
  if (dryRun && isNew) {
    tell(`the namespace ${namespace} is not there yet: what would lie in it is not shown to the API server`);
  }
  const shown = dryRun && isNew ? objects.filter(({ metadata }) => metadata.namespace === undefined) : objects;
  const of = (kinds: RegExp): readonly InstalledObject[] => shown.filter(({ kind }) => kinds.test(kind));
  const isControlPlane = ({ metadata }: InstalledObject): boolean =>
    (metadata["labels"] as Record<string, string> | undefined)?.["app"] === "tulled";
  const definitions = of(/^CustomResourceDefinition$/);
  const workloads = of(/^(Deployment|DaemonSet)$/);
  const webhooks = of(/WebhookConfiguration$/);
  const rest = shown.filter((each) => ![...definitions, ...workloads, ...webhooks].includes(each));

  await applyAll(definitions, options);
  if (!dryRun) await waitForDefinitions(definitions, options);
  await applyAll(rest, options);
  for (const isFirst of [true, false]) {
    const some = workloads.filter((each) => isControlPlane(each) === isFirst);
    await applyAll(some, options);
    if (!dryRun) for (const each of some) await waitForWorkload(each as Workload, options);
    if (!isFirst) continue;
    await applyAll(webhooks, options);
    if (!dryRun) for (const each of webhooks) await waitForBundle(each, options);
  }
}

/** Whether it was there. */
async function ensureNamespace({ client, namespace, dryRun, tell }: InstallOptions): Promise<boolean> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  try {
    const { status } = await client.request<{ readonly status?: { readonly phase?: string } }>({ path });
    if (status?.phase === "Terminating") {
      throw new InstallFailure(`the namespace ${namespace} is being removed; wait until it is gone`);
    }
    return true;
  } catch (error) {
    if (!(error instanceof KubernetesError) || error.code !== 404) throw error;
  }
  if (dryRun) return false;
  // The label tells uninstall that the namespace came with the rest.
  const labels = { "app.kubernetes.io/part-of": partOfTulle };
  const body = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels } };
  await client.request({ method: "POST", path: "/api/v1/namespaces", body });
  tell(`Namespace ${namespace} created`);
  return false;
}

async function applyAll(objects: readonly InstalledObject[], { client, dryRun, tell }: InstallOptions): Promise<void> {
  for (const object of objects) {
    try {
      // What others have set of these objects by hand was meant for an installation of before.
      await client.apply(pathOfObject(object), object, installManager, dryRun ? { dryRun: "All" } : {});
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error;
      throw new InstallFailure(`${objectText(object)} is refused: ${error.message}`);
    }
  }
  if (objects.length === 0) return;
  const [first] = objects;
  const kinds = new Set(objects.map(({ kind }) => kind));
  const what = objects.length === 1 ? objectText(first!) : `${objects.length} objects (${[...kinds].join(", ")})`;
  tell(`${what} ${dryRun ? "would be applied" : "applied"}`);
}

/** Polls until `look` says undefined; what it says is told once, and is in the failure. */
async function waitUntil(
  what: string,
  look: () => Promise<string | undefined>,
  { timeoutMs, tell }: InstallOptions,
  why: () => Promise<string> = async () => "",
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (let told: string | undefined; ;) {
    const missing = await look();
    if (missing === undefined) return;
    if (missing !== told) tell(`waiting for ${what}: ${missing}`);
    told = missing;
    if (performance.now() > deadline) {
      const reason = await why();
      const seconds = Math.round(timeoutMs / 1000);
      throw new InstallFailure(
        `${what} did not come within ${seconds} s: ${missing}${reason === "" ? "" : `\n${reason}`}`,
      );
    }
    await delay(pollMs);
  }
}

interface Conditions {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

async function waitForDefinitions(objects: readonly InstalledObject[], options: InstallOptions): Promise<void> {
  for (const object of objects) {
    await waitUntil(
      objectText(object),
      async () => {
        const { status } = await options.client.request<Conditions>({ path: pathOfObject(object) });
        const isThere = status?.conditions?.some((each) => each.type === "Established" && each.status === "True");
        return isThere === true ? undefined : "it is not established";
      },
      options,
    );
  }
}

async function waitForWorkload(object: Workload, options: InstallOptions): Promise<void> {
  await waitUntil(
    objectText(object),
    async () => workloadUnready(await options.client.request<Workload>({ path: pathOfObject(object) })),
    options,
    () => workloadTrouble(options.client, object),
  );
}

interface WebhookConfiguration {
  readonly webhooks?: readonly { readonly clientConfig: { readonly caBundle?: string } }[];
}

async function waitForBundle(object: InstalledObject, options: InstallOptions): Promise<void> {
  await waitUntil(
    objectText(object),
    async () => {
      const { webhooks = [] } = await options.client.request<WebhookConfiguration>({ path: pathOfObject(object) });
      const isWhole = webhooks.every(({ clientConfig }) => (clientConfig.caBundle ?? "") !== "");
      return isWhole ? undefined : "the control plane has not written its certificate there";
    },
    options,
  );
}
