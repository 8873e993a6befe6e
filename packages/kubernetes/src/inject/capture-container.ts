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
}

export function captureContainer(settings: CaptureContainerSettings): NamedObject {
  const { cni, dns } = settings;
  return {
    name: cni ? injectedContainers.validation : injectedContainers.capture,
    image: settings.image,
    ...(settings.imagePullPolicy === undefined ? {} : { imagePullPolicy: settings.imagePullPolicy }),
    args: cni ? ["validate"] : ["install", ...settings.args, ...(dns ? ["--capture-all-dns"] : [])],
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
