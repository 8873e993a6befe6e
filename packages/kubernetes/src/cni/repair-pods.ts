// Pods that slipped through: started before the plug-in was part of the node's network, they wait in their init
// container, which finds no capture. They are evicted, as far as disruption budgets allow it, and their owner makes
// them anew.
import type { Logger } from "@tulle/telemetry";
import type { Clock } from "@tulle/timing";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { KubernetesError } from "../client/kubernetes-error.ts";
import { injectedContainers } from "../names.ts";

interface Terminated {
  readonly exitCode: number;
}

interface WaitingPod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
    readonly ownerReferences?: readonly { readonly controller?: boolean }[];
  };
  readonly status?: {
    readonly initContainerStatuses?: readonly {
      readonly name: string;
      readonly state?: { readonly terminated?: Terminated };
      readonly lastState?: { readonly terminated?: Terminated };
    }[];
  };
}

export interface RepairOptions {
  readonly client: Pick<KubernetesClient, "request">;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
}

const lookEveryMs = 10_000;
const tooManyRequests = 429;

/** Looks again and again until it is disposed of. */
export function startRepair(options: RepairOptions): Disposable {
  let cancel = (): void => undefined;
  let isOver = false;
  const look = async (): Promise<void> => {
    try {
      await repairPods(options);
    } catch (error) {
      options.log.warning("pods that are not captured cannot be looked for", { reason: (error as Error).message });
    }
    if (!isOver) cancel = options.clock.after(lookEveryMs, () => void look());
  };
  void look();
  return {
    [Symbol.dispose]: () => {
      isOver = true;
      cancel();
    },
  };
}

/** One look. @throws {KubernetesError} */
export async function repairPods({ client, nodeName, log }: RepairOptions): Promise<void> {
  // What the API server has at hand will do.
  const query = { fieldSelector: `spec.nodeName=${nodeName}`, resourceVersion: "0" };
  const { items } = await client.request<{ items: readonly WaitingPod[] }>({ path: "/api/v1/pods", query });
  for (const pod of items.filter(isUncaptured)) {
    const { name, namespace, uid, ownerReferences = [] } = pod.metadata;
    if (!ownerReferences.some(({ controller }) => controller === true)) {
      log.warning("a pod is not captured, and nobody would make it anew: delete it", { namespace, pod: name });
      continue;
    }
    const body = {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name, namespace },
      deleteOptions: { preconditions: { uid } },
    };
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
    try {
      await client.request({ method: "POST", path, body });
      log.info("a pod that was not captured is evicted", { namespace, pod: name });
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error;
      if (error.code === tooManyRequests)
        log.info("a disruption budget keeps a pod that is not captured", { namespace, pod: name });
      else if (error.code !== 404 && error.code !== 409) throw error;
    }
  }
}

function isUncaptured({ metadata, status }: WaitingPod): boolean {
  const found = status?.initContainerStatuses?.find(({ name }) => name === injectedContainers.validation);
  const last = found?.state?.terminated ?? found?.lastState?.terminated;
  return metadata.deletionTimestamp === undefined && last !== undefined && last.exitCode !== 0;
}
