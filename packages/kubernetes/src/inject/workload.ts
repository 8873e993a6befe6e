// Which workload a pod is of: by its owner, as Istio's injector finds it, so that telemetry names the Deployment and
// not one of its ReplicaSets.
import { isPlainObject } from "./plain-object.ts";
import { labelsOf, type Pod } from "./pod.ts";

export interface Workload {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
}

/** Undefined for a pod whose name nobody has chosen yet, and that nobody owns. */
export function workloadOf(pod: Pod): Workload | undefined {
  const metadata = pod.metadata ?? {};
  const owners = Array.isArray(metadata["ownerReferences"]) ? (metadata["ownerReferences"] as unknown[]) : [];
  for (const owner of owners) {
    if (!isPlainObject(owner) || owner["controller"] !== true) continue;
    const { apiVersion, kind, name } = owner;
    if (typeof apiVersion === "string" && typeof kind === "string" && typeof name === "string")
      return ownerOfOwner({ apiVersion, kind, name }, labelsOf(pod)["pod-template-hash"]);
  }
  if (metadata.name !== undefined) return { apiVersion: "v1", kind: "Pod", name: metadata.name };
  return undefined;
}

/** What Kubernetes' controllers make of a name: `catalog-7d4b9` of `catalog`, `report-29345670` of `report`. */
function ownerOfOwner(owner: Workload, hash: string | undefined): Workload {
  const { kind, name } = owner;
  if (kind === "ReplicaSet" && hash !== undefined && name.endsWith(`-${hash}`) && name.length > hash.length + 1)
    return { apiVersion: "apps/v1", kind: "Deployment", name: name.slice(0, -hash.length - 1) };
  const scheduled = kind === "Job" ? /^(.+)-\d{8,10}$/.exec(name)?.[1] : undefined;
  if (scheduled !== undefined) return { apiVersion: "batch/v1", kind: "CronJob", name: scheduled };
  return owner;
}

/** Istio's `ISTIO_META_OWNER`. */
export function ownerUri({ apiVersion, kind, name }: Workload, namespace: string): string {
  return `kubernetes://apis/${apiVersion}/namespaces/${namespace}/${kind.toLowerCase()}s/${name}`;
}
