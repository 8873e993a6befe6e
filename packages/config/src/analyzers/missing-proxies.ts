/**
 * IST0103: a running pod that should have a sidecar and has none – mostly because it was started before its namespace
 * was labelled.
 */
import { decideInjection } from "../rules/decide-injection.ts";
import { proxyContainers } from "../rules/injected-containers.ts";
import type { Pod } from "../kinds/resource.ts";
import type { Analyzer } from "./analyzer.ts";

export const missingProxies: Analyzer = {
  name: "missing-proxies",
  codes: ["IST0103"],
  *run(mesh) {
    const namespaceLabels = new Map(
      mesh.list("Namespace").map(({ metadata }) => [metadata.name, metadata.labels ?? {}]),
    );
    for (const resource of mesh.list("Pod")) {
      const { namespace, name, labels = {}, annotations = {} } = resource.metadata;
      const injection = decideInjection({
        namespace,
        namespaceLabels: namespaceLabels.get(namespace) ?? {},
        podLabels: labels,
        podAnnotations: annotations,
        hostNetwork: resource.spec.hostNetwork ?? false,
      });
      if (injection === "none" || hasProxy(resource)) continue;
      yield {
        code: "IST0103",
        resource,
        path: ["metadata"],
        message: `the pod "${name}" should have a sidecar and has none`,
        suggestion: "Restart it: the proxy is added when a pod starts.",
      };
    }
  },
};

/**
 * On Kubernetes the proxy is among the containers, on one machine only among their states. A pod without states is
 * young.
 */
function hasProxy({ spec, status }: Pod): boolean {
  const containers = [...spec.containers, ...(spec.initContainers ?? []), ...(status?.containerStatuses ?? [])];
  return status?.containerStatuses === undefined || containers.some(({ name }) => proxyContainers.has(name));
}
