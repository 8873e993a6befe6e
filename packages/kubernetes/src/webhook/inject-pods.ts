// What the API server is told of a pod that is to be made: the patch that gives it its proxy, or that it stays as it
// is.
import { meshConfigOf, type Store } from "@tulle/config";
import type { Counter, Logger, MetricRegistry } from "@tulle/telemetry";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import type { KubernetesObject } from "../follow/object-follower.ts";
import { injectPod, type InjectionResult } from "../inject/inject-pod.ts";
import { defaultValues, type InjectionValues, readValues } from "../inject/values.ts";
import { injectorWebhook, rootNamespace } from "../names.ts";
import type { AdmissionAnswer, AdmissionRequest } from "./admission-review.ts";

export interface InjectPodsOptions {
  readonly client: Pick<KubernetesClient, "request">;
  readonly store: Pick<Store, "get" | "list">;
  readonly version: string;
  readonly revision: string;
  readonly metrics: MetricRegistry;
  readonly log: Logger;
}

type Labels = Readonly<Record<string, string>>;

export function injectPods(options: InjectPodsOptions): (request: AdmissionRequest) => Promise<AdmissionAnswer> {
  const { store, client } = options;
  const counted = injectionMetrics(options.metrics);
  const valuesOf = valuesReader(options);
  return async ({ object, namespace: name }) => {
    counted.requests.increment();
    const inject = (labels: Labels): InjectionResult =>
      injectPod({
        pod: object,
        namespace: { name, labels },
        mesh: meshConfigOf(store.list("ConfigMap")),
        values: valuesOf(),
      });
    const known = store.get("Namespace", "", name)?.metadata.labels;
    let result = known === undefined ? undefined : inject(known);
    // The API server chose the pod by labels that the watch may not have told of yet: before a pod stays without its
    // proxy, they are asked for.
    if (result === undefined || result.outcome === "passed") {
      const now = await namespaceLabels(client, name);
      if (now !== undefined) result = inject(now);
    }
    if (result === undefined) return refused(counted.failed, [`the namespace ${name} is not known`], []);
    switch (result.outcome) {
      case "injected":
        counted.injected.increment();
        return { patch: result.patch, warnings: result.warnings };
      case "passed":
        counted.passed.increment();
        return { warnings: result.warnings };
      case "refused":
        return refused(counted.failed, result.problems, result.warnings);
    }
  };
}

function refused(failed: Counter, problems: readonly string[], warnings: readonly string[]): AdmissionAnswer {
  failed.increment();
  return { refusal: `the pod cannot get its proxy: ${problems.join("; ")}`, warnings };
}

/** Undefined where there is none. By a list, which is allowed where the namespaces are followed. */
async function namespaceLabels(client: InjectPodsOptions["client"], name: string): Promise<Labels | undefined> {
  const { items } = await client.request<{ items: readonly (KubernetesObject & { metadata: { labels?: Labels } })[] }>({
    path: "/api/v1/namespaces",
    query: { fieldSelector: `metadata.name=${name}` },
  });
  const [found] = items;
  return found && (found.metadata.labels ?? {});
}

/** What the installation says, in a ConfigMap; what cannot be read leaves the last that could. */
function valuesReader({ store, version, revision, log }: InjectPodsOptions): () => InjectionValues {
  const defaults = defaultValues(version, revision);
  let read: { readonly text: string | undefined; readonly values: InjectionValues } = {
    text: undefined,
    values: defaults,
  };
  return () => {
    const text = store.get("ConfigMap", rootNamespace, injectorWebhook(revision))?.data?.["values"];
    if (text === read.text) return read.values;
    const { values, problems } = readText(text, defaults);
    if (problems.length > 0)
      log.error("the values of injection cannot be used; those of before stay", { problems: problems.join("; ") });
    read = { text, values: problems.length > 0 ? read.values : values };
    return read.values;
  };
}

function readText(text: string | undefined, defaults: InjectionValues): ReturnType<typeof readValues> {
  if (text === undefined) return { values: defaults, problems: [] };
  try {
    return readValues(JSON.parse(text), defaults);
  } catch {
    return { values: defaults, problems: ["they are no JSON"] };
  }
}

/** By Istio's names (pkg/kube/inject/monitoring.go). */
function injectionMetrics(metrics: MetricRegistry) {
  const counter = (name: string, help: string): Counter => metrics.counter({ name, help });
  return {
    requests: counter("sidecar_injection_requests_total", "Pods that injection was asked for."),
    injected: counter("sidecar_injection_success_total", "Pods that got their proxy."),
    failed: counter("sidecar_injection_failure_total", "Pods that were refused, since they cannot get their proxy."),
    passed: counter("sidecar_injection_skip_total", "Pods that stay as they are."),
  };
}
