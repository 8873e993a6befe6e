// What a Prometheus should scrape: each pod's proxy with its agent, and applications whose metrics the agent does not
// serve. In the form of Prometheus's HTTP service discovery, whose labels become those of all series of the target.
import {
  decideInjection,
  mergesMetrics,
  type MeshConfig,
  meshConfigOf,
  metricsAnnotations,
  type Pod,
  type Store,
} from "@tulle/config";
import type { MetricTarget } from "@tulle/config/api";
import { agentMetrics } from "../names/agent-metrics.ts";

export function metricTargets(store: Pick<Store, "list" | "get">): readonly MetricTarget[] {
  const mesh = meshConfigOf(store.list("ConfigMap"));
  return store.list("Pod").flatMap((pod) => targetsOf(pod, store, mesh));
}

function targetsOf(pod: Pod, store: Pick<Store, "get">, mesh: MeshConfig): readonly MetricTarget[] {
  const { metadata, spec, status } = pod;
  const address = status?.podIP;
  if (address === undefined || address === "") return [];
  const { namespace, name, labels = {}, annotations = {} } = metadata;
  const injection = decideInjection({
    namespace,
    namespaceLabels: store.get("Namespace", "", namespace)?.metadata.labels ?? {},
    podLabels: labels,
    podAnnotations: annotations,
    hostNetwork: spec.hostNetwork ?? false,
  });
  const about = { namespace, pod: name, app: labels["app"] ?? "", version: labels["version"] ?? "" };
  const target = (port: string, path: string, scheme: string): MetricTarget => ({
    targets: [`${address}:${port}`],
    labels: { ...about, __metrics_path__: path, __scheme__: scheme },
  });
  const ofProxy = injection === "none" ? [] : [target(String(agentMetrics.port), agentMetrics.path, "http")];
  const said = metricsAnnotations(annotations);
  if (said?.scrape !== "true" || injection === "gateway") return ofProxy;
  if (injection === "sidecar" && mergesMetrics(annotations, mesh)) return ofProxy;
  const port = said.port ?? String(spec.containers[0]?.ports?.[0]?.containerPort ?? 80);
  return [...ofProxy, target(port, said.path ?? "/metrics", said.scheme ?? "http")];
}
