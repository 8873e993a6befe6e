/**
 * IST0144: capture leaves alone what the proxy's user and group send, so that an application of that user or group goes
 * round the proxy. A member of the group is one that it can start a file of. Istio looks at `runAsUser` alone.
 */
import type { Container } from "../kinds/pod-spec.ts";
import type { Path } from "../findings/places.ts";
import { injectedContainers } from "../rules/injected-containers.ts";
import { injectionOf, type Analyzer } from "./analyzer.ts";

const proxyUser = 1337;

export const applicationUsers: Analyzer = {
  name: "application-users",
  codes: ["IST0144"],
  *run(mesh) {
    // Nothing is captured there, and nobody is exempt.
    if (mesh.options.networkMode === "loopback") return;
    for (const workload of mesh.workloads) {
      if (injectionOf(mesh, workload) !== "sidecar") continue;
      const { resource } = workload;
      const [at, spec] =
        resource.kind === "Pod"
          ? [["spec"], resource.spec]
          : [["spec", "template", "spec"], resource.spec.template.spec];
      const ofPod = spec.securityContext ?? {};
      const pod: Path = [...at, "securityContext"];
      const found: (readonly [Path, string])[] = [];
      if (ofPod.fsGroup === proxyUser) found.push([[...pod, "fsGroup"], "is a member of group"]);
      if (ofPod.supplementalGroups?.includes(proxyUser)) {
        found.push([[...pod, "supplementalGroups"], "is a member of group"]);
      }
      found.push(...identities(ofPod, pod));
      for (const kind of ["initContainers", "containers"] as const) {
        for (const [index, container] of (spec[kind] ?? []).entries()) {
          if (injectedContainers.has(container.name)) continue;
          found.push(...identities(container.securityContext ?? {}, [...at, kind, index, "securityContext"]));
        }
      }
      for (const [path, what] of found) {
        yield {
          code: "IST0144",
          resource,
          path,
          message: `an application ${what} ${proxyUser}, which is the proxy's: what it sends goes round the proxy`,
          suggestion: "Choose another number.",
        };
      }
    }
  },
};

function* identities(
  { runAsUser, runAsGroup }: NonNullable<Container["securityContext"]>,
  path: Path,
): Generator<readonly [Path, string]> {
  if (runAsUser === proxyUser) yield [[...path, "runAsUser"], "runs as user"];
  if (runAsGroup === proxyUser) yield [[...path, "runAsGroup"], "runs as group"];
}
