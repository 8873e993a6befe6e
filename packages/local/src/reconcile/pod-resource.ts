// A running pod as an object of the store: what the control plane, `tulle pods` and `tulle get` know of it.
import type { Pod } from "@tulle/config";
import type { LocalPod } from "../pod/local-pod.ts";
import { planName, podLabels } from "../pod/pod-plan.ts";

/** Where the app itself listens, past its sidecar. */
export const appAddressAnnotation = "local.tulle.io/app-address";

/**
 * On a Pod, with the time, by whoever wants it replaced, or its proxy started again: both are done in good order. The
 * Deployment stays as its file says, which an annotation of its template (kubectl's way) would stand above from then
 * on.
 */
export const restartAnnotation = "local.tulle.io/restarted-at";
export const proxyRestartAnnotation = "local.tulle.io/proxy-restarted-at";

/** `wishes` are annotations that its pod has beyond those of its template. */
export function buildPod(pod: LocalPod, wishes: Readonly<Record<string, string>> = {}): Pod {
  const { plan } = pod;
  const status = pod.ready ? "True" : "False";
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: pod.name,
      namespace: plan.namespace,
      uid: pod.uid,
      labels: podLabels(plan),
      annotations: { ...plan.annotations, ...wishes, [appAddressAnnotation]: pod.addresses.app },
      creationTimestamp: pod.createdAt,
      ...(pod.leavingSince === undefined ? {} : { deletionTimestamp: pod.leavingSince }),
      ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: planName(plan) }],
    },
    spec: { ...plan.spec, serviceAccountName: plan.serviceAccount, nodeName: pod.network.node.name },
    status: {
      phase: pod.phase === "running" ? "Running" : "Pending",
      podIP: pod.addresses.pod,
      podIPs: pod.network.ips.map((ip) => ({ ip })),
      conditions: [
        {
          type: "Ready",
          status,
          ...(plan.problems[0] === undefined
            ? notReady(pod.failure)
            : { reason: "CannotRunHere", message: plan.problems.map((problem) => problem.message).join("; ") }),
        },
      ],
      containerStatuses: pod.programs.map(({ name, ready, restarts: restartCount, state }) => ({
        name,
        ready,
        restartCount,
        state,
      })),
      startTime: pod.createdAt,
    },
  };
}

/** Kubernetes' reason; its message names containers alone, and events the probes, which nobody keeps here. */
function notReady(failure: string | undefined): { readonly reason?: string; readonly message?: string } {
  return failure === undefined ? {} : { reason: "ContainersNotReady", message: failure };
}
