// What leads a pod's connections through its proxy: an init container that makes the kernel's rules, or, where the CNI
// plug-in has made them, one that fails where they are not there.
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
    resources: settings.resources,
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
