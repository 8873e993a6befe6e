/**
 * Where a pod's application has metrics of its own, by the annotations that Prometheus's users know, and whether its
 * proxy's agent serves them with the proxy's (Istio: enablePrometheusMerge).
 */
import type { MeshConfig } from "../mesh-config/mesh-config.ts";

/** As they are written; the agent fills in what is missing. */
export interface MetricsAnnotations {
  readonly scrape?: string;
  readonly port?: string;
  readonly path?: string;
  readonly scheme?: string;
}

const prefix = "prometheus.io/";
const mergeAnnotation = "prometheus.istio.io/merge-metrics";

/** Undefined where the pod says nothing of metrics, or that they are not to be read. */
export function metricsAnnotations(annotations: Readonly<Record<string, string>>): MetricsAnnotations | undefined {
  const found = ["scrape", "port", "path", "scheme"].flatMap((name) => {
    const value = annotations[prefix + name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const said: MetricsAnnotations = Object.fromEntries(found);
  return found.length === 0 || said.scrape === "false" ? undefined : said;
}

/** The pod's word beats the mesh's, which is true when missing. */
export function mergesMetrics(
  annotations: Readonly<Record<string, string>>,
  { enablePrometheusMerge = true }: Pick<MeshConfig, "enablePrometheusMerge">,
): boolean {
  const ofPod = annotations[mergeAnnotation];
  return ofPod === "true" || ofPod === "false" ? ofPod === "true" : enablePrometheusMerge;
}
