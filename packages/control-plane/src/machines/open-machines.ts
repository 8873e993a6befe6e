// All that a control plane has of machines which join it, opened together: their register, their entries, and the desk
// that they come to.
import type { Clock } from "@tulle/timing";
import type { Store } from "@tulle/config";
import { type Logger, SeldomWarnings } from "@tulle/telemetry";
import { type AdsConnection, type AdsServerHandlers, handlersOver } from "@tulle/xds";
import type { MeshAuthority } from "../ca/mesh-authority.ts";
import type { Leadership } from "../state/leadership.ts";
import { peerAddress } from "./machine-address.ts";
import { MachineDesk } from "./machine-desk.ts";
import { MachineEntries, type Replicas } from "./machine-entries.ts";
import { machineLabels } from "./machine-entry.ts";
import { MachineRegister, type RegisterTexts } from "./machine-register.ts";

/** Istio: PILOT_WORKLOAD_ENTRY_GRACE_PERIOD. */
export const defaultMachineGraceMs = 10_000;

export interface MachinesOptions {
  readonly store: Store;
  readonly state: RegisterTexts;
  readonly replicas?: Replicas | undefined;
  readonly leadership?: Leadership | undefined;
  readonly authority: MeshAuthority;
  readonly clusterId: string;
  readonly graceMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Machines {
  readonly register: MachineRegister;
  readonly entries: MachineEntries;
  readonly desk: MachineDesk;
  readonly authority: MeshAuthority;
  /** What the group says of a machine. */
  readonly labelsOf: (namespace: string, name: string) => Readonly<Record<string, string>>;
  readonly portsOf: (namespace: string, name: string) => Readonly<Record<string, number>> | undefined;
  readonly localityOf: (namespace: string, name: string) => string | undefined;
  /** The same handlers; machines are there while they have a stream. */
  readonly following: (handlers: AdsServerHandlers) => AdsServerHandlers;
  /** Before the streams of a control plane that ends are closed. */
  rest(): void;
  close(): Promise<void>;
}

/** Rejects where the register cannot be read. */
export async function openMachines(options: MachinesOptions): Promise<Machines> {
  const { authority, log } = options;
  const register = await MachineRegister.open(options.state, (reason) =>
    log.warning("the register of machines cannot be read again", { reason }),
  );
  const entries = new MachineEntries({ ...options, register });
  const warnings = new SeldomWarnings(log);
  const templateOf = (namespace: string, name: string) => {
    const machine = register.machine(namespace, name);
    return machine && entries.groupOf(machine);
  };
  return {
    register,
    entries,
    desk: new MachineDesk({ ...options, register, entries, warnings }),
    authority,
    labelsOf: (namespace, name) => {
      const group = templateOf(namespace, name);
      return group === undefined ? {} : machineLabels(group);
    },
    portsOf: (namespace, name) => {
      const template = templateOf(namespace, name)?.spec.template;
      return template && (template.ports ?? {});
    },
    localityOf: (namespace, name) => templateOf(namespace, name)?.spec.template.locality,
    following: (handlers) => following(handlers, register, entries),
    rest: () => entries.rest(),
    close: () => {
      register.close();
      return entries.close();
    },
  };
}

function following(handlers: AdsServerHandlers, register: MachineRegister, entries: MachineEntries): AdsServerHandlers {
  const open = new Map<string, Set<AdsConnection>>();
  const machineOf = ({ peerIdentity }: AdsConnection) => register.machineOf(peerIdentity?.serial);
  return handlersOver(handlers, {
    onConnect: (connection) => {
      const machine = machineOf(connection);
      if (machine === undefined) return;
      const streams = open.get(machine.name) ?? new Set();
      open.set(machine.name, streams.add(connection));
      entries.connected(machine, connection);
      // Of an address that is gone: its end would be noticed after minutes.
      const isElsewhere = ({ peer }: AdsConnection) => peerAddress(peer) !== peerAddress(connection.peer);
      for (const stream of [...streams].filter(isElsewhere)) {
        stream.close("UNAVAILABLE", "the machine has come from another address");
      }
    },
    onDisconnect: (connection) => {
      const machine = machineOf(connection);
      if (machine === undefined) return;
      const streams = open.get(machine.name);
      streams?.delete(connection);
      if (streams?.size === 0) open.delete(machine.name);
      if (machine.isGone !== true) entries.disconnected(machine, connection);
    },
  });
}
