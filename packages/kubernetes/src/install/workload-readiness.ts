// Whether a Deployment or DaemonSet is what it was asked to be, and if not, what its pods and the events about them
// say.
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import type { InstalledObject } from "./object-kinds.ts";

export interface Workload extends InstalledObject {
  readonly spec: {
    readonly replicas?: number;
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
    readonly desiredNumberScheduled?: number;
    readonly updatedNumberScheduled?: number;
    readonly numberAvailable?: number;
  };
}

interface ContainerStatus {
  readonly name: string;
  readonly ready?: boolean;
  readonly restartCount?: number;
  readonly state?: { readonly waiting?: { readonly reason?: string; readonly message?: string } };
  readonly lastState?: { readonly terminated?: { readonly reason?: string; readonly exitCode?: number } };
}

interface PodObject {
  readonly metadata: { readonly name: string };
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

interface EventObject {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly involvedObject?: { readonly kind?: string; readonly name?: string };
}

const mostReasons = 6;
const mostLogLines = 5;

/** Undefined for one that is whole. */
export function workloadUnready({ kind, metadata, spec, status = {} }: Workload): string | undefined {
  const generation = metadata["generation"];
  if (typeof generation === "number" && (status.observedGeneration ?? 0) < generation) return "nobody has looked at it";
  const isDaemonSet = kind === "DaemonSet";
  const wanted = isDaemonSet ? (status.desiredNumberScheduled ?? 0) : (spec.replicas ?? 1);
  const updated = (isDaemonSet ? status.updatedNumberScheduled : status.updatedReplicas) ?? 0;
  const available = (isDaemonSet ? status.numberAvailable : status.availableReplicas) ?? 0;
  if (updated < wanted) return `${updated} of ${wanted} pods are of the new kind`;
  if (!isDaemonSet && (status.replicas ?? 0) > updated) return "pods of before are still there";
  return available < wanted ? `${available} of ${wanted} pods are ready` : undefined;
}

/** What is wrong with its pods, a line each; empty where nothing is told. */
export async function workloadTrouble(client: KubernetesClient, workload: Workload): Promise<string> {
  const { name, namespace = "" } = workload.metadata;
  const within = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  const labelSelector = Object.entries(workload.spec.selector.matchLabels)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
  try {
    const { items: pods } = await client.request<{ readonly items: readonly PodObject[] }>({
      path: `${within}/pods`,
      query: { labelSelector },
    });
    const { items: events } = await client.request<{ readonly items: readonly EventObject[] }>({
      path: `${within}/events`,
      query: { limit: 500 },
    });
    const isOurs = ({ involvedObject }: EventObject): boolean =>
      involvedObject?.name === name || (involvedObject?.name?.startsWith(`${name}-`) ?? false);
    const warnings = events
      .filter((event) => event.type === "Warning" && isOurs(event))
      .map(({ involvedObject, reason, message }) => `${involvedObject?.name}: ${reason}: ${message}`);
    const lines = [...pods.flatMap(podTroubles), ...warnings.toReversed()];
    const said = await lastWords(client, within, pods);
    return [...new Set(lines)].slice(0, mostReasons).concat(said).join("\n");
  } catch (error) {
    return `its pods cannot be looked at: ${(error as Error).message}`;
  }
}

function podTroubles({ metadata: { name }, status = {} }: PodObject): readonly string[] {
  const unscheduled = (status.conditions ?? []).filter(
    ({ type, status: is }) => type === "PodScheduled" && is === "False",
  );
  const containers = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  return [
    ...unscheduled.map(({ reason, message }) => `${name}: ${reason}: ${message}`),
    ...containers.flatMap((each) => {
      const { waiting } = each.state ?? {};
      const { terminated } = each.lastState ?? {};
      const ended = terminated === undefined ? "" : `, ended with ${terminated.exitCode} before (${terminated.reason})`;
      if (waiting?.reason === undefined || waiting.reason === "PodInitializing") return [];
      return [
        `${name}: ${each.name}: ${waiting.reason}${waiting.message === undefined ? "" : `: ${waiting.message}`}${ended}`,
      ];
    }),
  ];
}

/** Of the first program that has ended: it alone knows why. */
async function lastWords(
  client: KubernetesClient,
  within: string,
  pods: readonly PodObject[],
): Promise<readonly string[]> {
  for (const { metadata, status = {} } of pods) {
    const ended = (status.containerStatuses ?? []).find(({ restartCount = 0 }) => restartCount > 0);
    if (ended === undefined) continue;
    const log = await client.text({
      path: `${within}/pods/${encodeURIComponent(metadata.name)}/log`,
      query: { container: ended.name, previous: true, tailLines: mostLogLines },
      accept: "*/*",
    });
    return log.trimEnd().split("\n");
  }
  return [];
}
