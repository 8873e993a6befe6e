// What the store knows of the pods whose workloads ask for certificates and configuration: a proof of identity is worth
// something only while the mesh runs such a pod.
import type { Store } from "@tulle/config";
import { serviceAccount } from "../snapshot/service-workloads.ts";

export interface KnownPods {
  /** Undefined for a pod that the store does not have. */
  get(namespace: string, name: string): KnownPod | undefined;
  /** How many pods run under the service account. */
  count(namespace: string, serviceAccount: string): number;
  /** Calls back after pods have come, gone or changed. */
  follow(listener: () => void): void;
}

export interface KnownPod {
  readonly serviceAccount: string;
  /** Undefined on platforms that give pods none. */
  readonly uid: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
}

export function knownPods(store: Pick<Store, "get" | "list" | "watch">): KnownPods {
  return {
    get: (namespace, name) => {
      const pod = store.get("Pod", namespace, name);
      if (pod === undefined) return undefined;
      const { metadata, spec } = pod;
      return { serviceAccount: serviceAccount(spec), uid: metadata.uid, labels: metadata.labels ?? {} };
    },
    count: (namespace, account) =>
      store.list("Pod", namespace).reduce((sum, { spec }) => sum + (serviceAccount(spec) === account ? 1 : 0), 0),
    follow: (listener) => {
      store.watch((changes) => {
        if (changes.some(({ resource }) => resource.kind === "Pod")) listener();
      });
    },
  };
}
