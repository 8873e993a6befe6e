// What the store knows of the pods whose workloads ask for certificates and configuration: a proof of identity is worth
// something only while the mesh runs such a pod.
import type { Store } from "@tulle/config";
import { serviceAccount } from "../snapshot/service-workloads.ts";

export interface KnownPods {
  /** Undefined for a pod that the store does not have. */
  get(namespace: string, name: string): KnownPod | undefined;
  /** How many pods run under the service account. */
  count(namespace: string, serviceAccount: string): number;
  /** Which machine a certificate is of, by `namespace/name`; undefined for a pod's. `gone`: of one that has left. */
  machineOf(serial: string | undefined): `${string}/${string}` | "gone" | undefined;
  /** Calls back after pods or machines have come, gone or changed. */
  follow(listener: () => void): void;
}

export interface KnownPod {
  readonly serviceAccount: string;
  /** Undefined on platforms that give pods none. */
  readonly uid: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** It has joined by a token: what it shows has to be its own certificate, not another one of its account. */
  readonly isMachine?: true;
}

interface Machine {
  readonly name: string;
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly isGone?: true;
}

/** Those that have joined by a token. */
interface Machines {
  readonly machines: readonly Machine[];
  machine(namespace: string, name: string): Machine | undefined;
  machineOf(serial: string | undefined): Machine | undefined;
  follow(listener: () => void): void;
}

/** Pods, and machines where any may join. */
export function knownPods(
  store: Pick<Store, "get" | "list" | "watch">,
  machines?: { readonly register: Machines; readonly labelsOf: (namespace: string, name: string) => Labels },
): KnownPods {
  const register = machines?.register;
  const isOf = (namespace: string, account: string) => (each: { namespace: string; serviceAccount: string }) =>
    each.namespace === namespace && each.serviceAccount === account;
  return {
    get: (namespace, name) => {
      const pod = store.get("Pod", namespace, name);
      if (pod !== undefined) {
        const { metadata, spec } = pod;
        return { serviceAccount: serviceAccount(spec), uid: metadata.uid, labels: metadata.labels ?? {} };
      }
      const machine = register?.machine(namespace, name);
      if (machine === undefined || machines === undefined) return undefined;
      const labels = machines.labelsOf(namespace, name);
      return { serviceAccount: machine.serviceAccount, uid: undefined, labels, isMachine: true };
    },
    count: (namespace, account) =>
      store.list("Pod", namespace).reduce((sum, { spec }) => sum + (serviceAccount(spec) === account ? 1 : 0), 0) +
      (register?.machines.filter(isOf(namespace, account)).length ?? 0),
    machineOf: (serial) => {
      const machine = register?.machineOf(serial);
      if (machine === undefined) return undefined;
      return machine.isGone === true ? "gone" : `${machine.namespace}/${machine.name}`;
    },
    follow: (listener) => {
      store.watch((changes) => {
        if (changes.some(({ resource }) => resource.kind === "Pod")) listener();
      });
      register?.follow(listener);
    },
  };
}

type Labels = Readonly<Record<string, string>>;
