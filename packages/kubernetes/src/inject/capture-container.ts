// What leads a pod's connections through its proxy: an init container that makes the kernel's rules, or, where the CNI
// plug-in has made them, one that fails where they are not there.
import { isDeepStrictEqual } from "node:util";
import { injectedContainers, proxyUser } from "../names.ts";
import type { NamedObject } from "./sidecar-container.ts";

export interface CaptureContainerSettings {
  /** The CNI plug-in makes the rules. */
  readonly cni: boolean;
  /** `tulle/capture` in both cases: it needs no capability to look. */
  readonly image: string;
  readonly imagePullPolicy: string | undefined;
  readonly resources: { readonly requests: object; readonly limits: object };
  /** Options of `tulle capture install`. */
  readonly args: readonly string[];
  /** See `answersDns`. */
  readonly dns: boolean;
  /** It ends when the proxy is ready, and so holds back what comes after it. */
  readonly waits: boolean;
}

/** Then it fails, which the pod's events show, and the kubelet starts it again. */
const longestWaitSeconds = 600;

/** Of a container that makes rules and then waits. */
const waitingRequests: Readonly<Record<string, string>> = { cpu: "10m", memory: "32Mi" };

/**
 * A scheduler adds what it requests to what the proxy does, which runs by then: the pod would take more room than it
 * needs. Requests that are the limits stay, since a pod is `Guaranteed` by all of its containers.
 */
function besideProxy(resources: CaptureContainerSettings["resources"]): CaptureContainerSettings["resources"] {
  const { requests, limits } = resources;
  if (isDeepStrictEqual(requests, limits)) return resources;
  const less = Object.entries(requests).map(([name, given]) => [name, waitingRequests[name] ?? given] as const);
  return { requests: Object.fromEntries(less), limits };
}

export function captureContainer(settings: CaptureContainerSettings): NamedObject {
  const { cni, dns, waits } = settings;
  const waiting = waits ? ["--wait-for-proxy", String(longestWaitSeconds)] : [];
  return {
    name: cni ? injectedContainers.validation : injectedContainers.capture,
    image: settings.image,
    ...(settings.imagePullPolicy === undefined ? {} : { imagePullPolicy: settings.imagePullPolicy }),
    args: cni
      ? ["validate", ...waiting]
      : ["install", ...settings.args, ...(dns ? ["--capture-all-dns"] : []), ...waiting],
    resources: waits ? besideProxy(settings.resources) : settings.resources,
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { ...(cni ? {} : { add: ["NET_ADMIN", "NET_RAW"] }), drop: ["ALL"] },
      privileged: false,
      readOnlyRootFilesystem: true,
      runAsGroup: cni ? proxyUser : 0,
      runAsNonRoot: cni,
      runAsUser: cni ? proxyUser : 0,
      seccompProfile: { type: "RuntimeDefault" },
    },
  };
}
