// A machine's WorkloadEntry: what its WorkloadGroup says, and of the machine its address and its health alone.
import { isDeepStrictEqual } from "node:util";
import { keyOf, parseResource, type ResourceOf, type WorkloadEntry } from "@tulle/config";
import { machineAnnotation } from "../snapshot/addressed-workloads.ts";
import { tlsModeLabel } from "../snapshot/workload-mutual-tls.ts";
import type { SavedMachine } from "./machine-register.ts";

export type WorkloadGroup = ResourceOf<"WorkloadGroup">;

/** Which of several control planes keeps the entry: the one that has the machine's stream, or had it last. */
export const keeperAnnotation = "networking.tulle.io/keeper";
/** Istio's, for whoever looks for it. */
const groupAnnotation = "istio.io/autoRegistrationGroup";

/** Istio's: which network a workload is in, so that it reaches what is in its own by its address. */
const networkLabel = "topology.istio.io/network";

export interface MachineHealth {
  readonly isHealthy: boolean;
  /** In one word, and in a sentence. */
  readonly reason: string;
  readonly message: string;
  readonly since: string;
}

const maxNameLength = 253;

/** `<group>-<address>[-<network>]` (Istio: autoregisteredWorkloadEntryName). */
export function entryName(group: string, address: string, network = ""): string {
  const parts = [group, address.replaceAll(":", "-"), ...(network === "" ? [] : [network])];
  return parts
    .join("-")
    .slice(-maxNameLength)
    .replaceAll(/^-+|-+$/g, "");
}

/** What selectors choose the machine by. */
export function machineLabels({ spec }: WorkloadGroup): Readonly<Record<string, string>> {
  const { network, labels } = spec.template;
  const inNetwork = network === undefined || network === "" ? {} : { [networkLabel]: network };
  return { ...inNetwork, ...labels, ...spec.metadata?.labels };
}

/** `keeper` is empty where there is one control plane alone. */
export function machineEntry(
  group: WorkloadGroup,
  machine: SavedMachine,
  health: MachineHealth,
  keeper: string,
): WorkloadEntry {
  const { template, metadata } = group.spec;
  const { address, serviceAccount, namespace } = machine;
  const { resource } = parseResource({
    apiVersion: "networking.tulle.io/v1",
    kind: "WorkloadEntry",
    metadata: {
      name: entryName(machine.group, address, template.network),
      namespace,
      labels: { [tlsModeLabel]: "istio", ...machineLabels(group) },
      annotations: {
        ...metadata?.annotations,
        [groupAnnotation]: machine.group,
        [machineAnnotation]: machine.name,
        ...(keeper === "" ? {} : { [keeperAnnotation]: keeper }),
      },
    },
    // The account is the certificate's, which outlives a change of the group's.
    spec: { ...template, address, serviceAccount },
    status: {
      conditions: [
        {
          type: "Healthy",
          status: health.isHealthy ? "True" : "False",
          reason: health.reason,
          message: health.message,
          lastTransitionTime: health.since,
        },
      ],
    },
  });
  // Its parts were checked with the group, and the address before.
  if (resource?.kind !== "WorkloadEntry") throw new Error(`no entry can be made of ${keyOf(group).name}`);
  return resource;
}

export function healthOf({ status }: Pick<WorkloadEntry, "status">) {
  return status?.conditions?.find(({ type }) => type === "Healthy");
}

/** Whether the entry that is there says all that the wanted one does; others may have added to it. */
export function saysAll(there: WorkloadEntry, wanted: WorkloadEntry): boolean {
  const has = (held: Labels = {}, all: Labels = {}): boolean =>
    Object.entries(all).every(([name, value]) => held[name] === value);
  return (
    has(there.metadata.labels, wanted.metadata.labels) &&
    has(there.metadata.annotations, wanted.metadata.annotations) &&
    isDeepStrictEqual(there.spec, wanted.spec) &&
    isDeepStrictEqual(healthOf(there), healthOf(wanted))
  );
}

type Labels = Readonly<Record<string, string>>;
