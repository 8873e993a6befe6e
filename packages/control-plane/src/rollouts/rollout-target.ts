// What a roll-out is about in the mesh as it is: whether its weights can be laid, which version has pods that are
// ready, and whose requests are counted for which.
import { resolveHost, type RolloutSpec, selects } from "@tulle/config";
import { workloadName } from "../snapshot/build-endpoints.ts";
import {
  overlayProblem,
  type OverlaidParts,
  type RolloutOverlay,
  subsetName,
  versionLabels,
} from "../snapshot/rollout-overlay.ts";
import { type EndpointSnapshot, type MeshService, servicePortKey } from "../snapshot/mesh-snapshot.ts";
import { tlsModeLabel } from "../snapshot/workload-mutual-tls.ts";
import type { ResourceReader } from "../snapshot/resource-reader.ts";
import type { MeasuredPod } from "./rollout-evidence.ts";
import type { RolloutState } from "./rollout-machine.ts";
import type { KnownVersions, Version } from "./traffic-counts.ts";

export interface RolloutName {
  readonly namespace: string;
  readonly name: string;
}

export function hostOf(spec: RolloutSpec, namespace: string, { services }: Pick<OverlaidParts, "services">): string {
  return resolveHost(spec.host, namespace, (host) => services.some(({ hostname }) => hostname === host));
}

/** `weight` in the place of the state's. */
export function overlayOf(
  { namespace, name }: RolloutName,
  { spec, headerMatch }: Pick<RolloutState, "spec" | "headerMatch">,
  host: string,
  weight: number,
): RolloutOverlay {
  const { stable, canary, virtualService } = spec;
  return {
    name,
    namespace,
    host,
    stable,
    canary,
    weight,
    ...(virtualService === undefined ? {} : { virtualService }),
    ...(headerMatch === undefined ? {} : { headerMatch }),
  };
}

/** Why it cannot start: it needs both versions. */
export function startProblem(rollout: RolloutName, spec: RolloutSpec, parts: OverlaidParts): string | undefined {
  const host = hostOf(spec, rollout.namespace, parts);
  return overlayProblem(parts, overlayOf(rollout, { spec }, host, 50));
}

/** Which versions have an endpoint that is ready. */
export function readyVersions(
  spec: RolloutSpec,
  host: string,
  parts: OverlaidParts,
  endpoints: EndpointSnapshot,
): ReadonlySet<Version> {
  const service = parts.services.find(({ hostname }) => hostname === host);
  const all = (service?.ports ?? []).flatMap(
    ({ number }) => endpoints.byServicePort.get(servicePortKey(service!, number)) ?? [],
  );
  return new Set(
    (["stable", "canary"] as const).filter((version) => {
      const labels = versionLabels(parts, host, spec[version]);
      return labels !== undefined && all.some((endpoint) => selects(labels, endpoint.labels));
    }),
  );
}

export interface CountedWorkloads {
  /** `<namespace>/<name>` of a workload → its version. */
  readonly versions: ReadonlyMap<string, Version>;
  /** One that runs pods of both: its requests cannot be told apart. */
  readonly shared: string | undefined;
}

export function countedWorkloads(
  spec: RolloutSpec,
  host: string,
  parts: OverlaidParts,
  reader: ResourceReader,
): CountedWorkloads {
  const service = parts.services.find(({ hostname }) => hostname === host);
  const versions = new Map<string, Version>();
  let shared: string | undefined;
  for (const pod of service === undefined ? [] : reader.list("Pod", service.namespace)) {
    const { labels = {}, namespace } = pod.metadata;
    if (!isBehind(service!, labels)) continue;
    const workload = `${namespace}/${workloadName(pod)}`;
    for (const version of ["stable", "canary"] as const) {
      const chosen = versionLabels(parts, host, spec[version]);
      if (chosen === undefined || !selects(chosen, labels)) continue;
      if ((versions.get(workload) ?? version) !== version) shared = workload;
      versions.set(workload, version);
    }
  }
  return { versions, shared };
}

/** Subsets are those that routes lead to while it runs. */
export function knownVersions(
  { name, workloads }: Pick<RolloutName, "name"> & { readonly workloads: ReadonlyMap<string, Version> },
  { stable, canary }: RolloutSpec,
): KnownVersions {
  const versions = ["stable", "canary"] as const;
  return {
    ofWorkload: (workload) => workloads.get(workload),
    ofSubset: (subset) => versions.find((version) => subsetName({ name, stable, canary }, version) === subset),
  };
}

function isBehind({ selector }: MeshService, labels: Readonly<Record<string, string>>): boolean {
  return Object.keys(selector).length > 0 && selects(selector, labels);
}

/** Pods with a proxy: sidecars, and gateways, whose proxy is a container that the manifest names. */
export function measuredPods(reader: ResourceReader, { ofWorkload }: KnownVersions): readonly MeasuredPod[] {
  return reader.list("Pod").flatMap((pod) => {
    const { metadata, spec, status } = pod;
    const hasProxy =
      metadata.labels?.[tlsModeLabel] !== undefined || spec.containers.some(({ name }) => name === "istio-proxy");
    const address = status?.podIP;
    if (!hasProxy || address === undefined || address === "") return [];
    const version = ofWorkload(`${metadata.namespace}/${workloadName(pod)}`);
    return [{ id: `${metadata.namespace}/${metadata.name}`, address, version }];
  });
}
