// Keeps the WorkloadEntries of machines as the machines are: there while one is, well while its stream stands and its
// probe says so, gone when it stops, or a while after it has vanished.
import type { Clock } from "@tulle/timing";
import { type Store, StoreRefusal } from "@tulle/config";
import type { Logger } from "@tulle/telemetry";
import { addressHolder } from "./machine-address.ts";
import { entryName, machineAnnotation, machineEntry, type MachineHealth, type WorkloadGroup } from "./machine-entry.ts";
import type { MachineRegister, SavedMachine } from "./machine-register.ts";

export interface MachineEntriesOptions {
  readonly store: Store;
  readonly register: MachineRegister;
  /** How long the entry of a machine stays that says nothing any more. */
  readonly graceMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A control plane that has begun waits longer: agents ask again after up to 10 s. */
const leastGraceAtStartMs = 30_000;

/** Machines tell how they are every 5 s; a network that swallows everything ends no stream. */
const silenceMs = 30_000;

interface Presence {
  /** Its newest stream: one that an address left behind ends only after minutes. */
  stream: object | undefined;
  /** Of an earlier run, with no stream in this one yet: its streams may only be on their way. */
  awaitsFirstStream: boolean;
  isSilent: boolean;
  cancelSilence: () => void;
  /** Undefined before it has told anything in this run. */
  told: { readonly isReady: boolean; readonly reason: string } | undefined;
  /** It stops, and has said so: until it tells anything else, its streams mean nothing. */
  isStopping: boolean;
  cancelGrace: () => void;
}

export class MachineEntries {
  readonly #options: MachineEntriesOptions;
  /** By `namespace/name`. */
  readonly #presence = new Map<string, Presence>();
  readonly #unwatch: () => void;
  #working: Promise<void> = Promise.resolve();

  constructor(options: MachineEntriesOptions) {
    this.#options = options;
    const atStartMs = Math.max(options.graceMs, leastGraceAtStartMs);
    for (const machine of options.register.machines) {
      this.#of(machine).awaitsFirstStream = true;
      this.#startGrace(machine, atStartMs);
    }
    this.#unwatch = options.store.watch((changes) => {
      if (!changes.some(({ resource }) => resource.kind === "WorkloadGroup")) return;
      for (const machine of options.register.machines) void this.#update(machine);
    });
  }

  /** The machine's name for people: whether it is connected, and well. */
  stateOf(machine: SavedMachine): "healthy" | "unhealthy" | "disconnected" {
    const presence = this.#of(machine);
    const { told } = presence;
    if (!isThere(presence)) return "disconnected";
    return told?.isReady === true ? "healthy" : "unhealthy";
  }

  groupOf({ namespace, group }: Pick<SavedMachine, "namespace" | "group">): WorkloadGroup | undefined {
    return this.#options.store.get("WorkloadGroup", namespace, group);
  }

  entryOf(machine: SavedMachine): string {
    return entryName(machine.group, machine.address, this.groupOf(machine)?.spec.template.network);
  }

  /** Name of the entry that there is; empty while there is none. */
  listedAs({ namespace, name }: Pick<SavedMachine, "namespace" | "name">): string {
    const entries = this.#options.store.list("WorkloadEntry", namespace);
    return entries.find(({ metadata }) => metadata.annotations?.[machineAnnotation] === name)?.metadata.name ?? "";
  }

  /** Who has the address, other than this machine. */
  holderOf(machine: SavedMachine, address: string): string | undefined {
    const network = this.groupOf(machine)?.spec.template.network ?? "";
    const own = this.listedAs(machine);
    const ownEntry = own === "" ? "" : `${machine.namespace}/${own}`;
    return addressHolder(this.#options.store, address, network, ownEntry);
  }

  connected(machine: SavedMachine, stream: object): void {
    const presence = this.#of(machine);
    presence.stream = stream;
    presence.awaitsFirstStream = false;
    presence.cancelGrace();
    // Before it tells how it is, an entry of an earlier run stays as it was.
    if (presence.told !== undefined) void this.#update(machine);
  }

  disconnected(machine: SavedMachine, stream: object): void {
    const presence = this.#of(machine);
    if (presence.stream !== stream) return;
    presence.stream = undefined;
    this.#startGrace(machine, this.#options.graceMs);
    void this.#update(machine);
  }

  told(machine: SavedMachine, isReady: boolean, reason: string): Promise<void> {
    const presence = this.#of(machine);
    presence.told = { isReady, reason };
    presence.isStopping = false;
    if (presence.isSilent) presence.cancelGrace();
    presence.isSilent = false;
    presence.cancelSilence();
    presence.cancelSilence = this.#options.clock.after(silenceMs, () => {
      presence.isSilent = true;
      presence.awaitsFirstStream = false;
      this.#startGrace(machine, this.#options.graceMs);
      void this.#update(machine);
    });
    // The grace of the start is not prolonged by words of one whose stream never comes.
    const hasLostStream = presence.stream === undefined && !presence.awaitsFirstStream;
    if (hasLostStream) this.#startGrace(machine, this.#options.graceMs);
    return this.#update(machine);
  }

  /** At once; it may come again. */
  stopping(machine: SavedMachine): Promise<void> {
    this.#of(machine).isStopping = true;
    return this.#update(machine);
  }

  /** For good. */
  gone(machine: SavedMachine): Promise<void> {
    this.#of(machine).cancelGrace();
    this.#of(machine).cancelSilence();
    this.#presence.delete(keyOf(machine));
    return this.#update(machine);
  }

  async close(): Promise<void> {
    this.#unwatch();
    for (const { cancelGrace, cancelSilence } of this.#presence.values()) {
      cancelGrace();
      cancelSilence();
    }
    await this.#working;
  }

  #of(machine: SavedMachine): Presence {
    const key = keyOf(machine);
    let presence = this.#presence.get(key);
    if (presence === undefined) {
      const nothing = (): void => undefined;
      const timers = { cancelSilence: nothing, cancelGrace: nothing };
      const unknown = { stream: undefined, awaitsFirstStream: false, told: undefined };
      presence = { ...unknown, isSilent: false, isStopping: false, ...timers };
      this.#presence.set(key, presence);
    }
    return presence;
  }

  #startGrace(machine: SavedMachine, afterMs: number): void {
    const presence = this.#of(machine);
    presence.cancelGrace();
    presence.cancelGrace = this.#options.clock.after(afterMs, () => {
      if (isThere(presence)) return;
      this.#options.log.warning("a machine has vanished: its entry goes", { machine: keyOf(machine) });
      presence.told = undefined;
      presence.awaitsFirstStream = false;
      presence.isStopping = true;
      void this.#update(machine);
    });
  }

  /** One after the other, each by what holds when it is its turn. */
  #update({ namespace, name }: SavedMachine): Promise<void> {
    const done = this.#working.then(() => this.#write(namespace, name));
    this.#working = done.catch((error: unknown) => {
      const detail = error instanceof StoreRefusal ? error.message : String(error);
      this.#options.log.error("the entry of a machine cannot be kept", { machine: `${namespace}/${name}`, detail });
    });
    return this.#working;
  }

  async #write(namespace: string, name: string): Promise<void> {
    const { store, register } = this.#options;
    const machine = register.machine(namespace, name);
    const group = machine && this.groupOf(machine);
    const entry = machine && group && this.#wanted(machine, group);
    const by = `the machine ${name}`;
    const before = store
      .list("WorkloadEntry", namespace)
      .filter(({ metadata }) => metadata.annotations?.[machineAnnotation] === name);
    for (const { metadata } of before) {
      if (entry === "as it is" || metadata.name === entry?.metadata.name) continue;
      await store.delete({ kind: "WorkloadEntry", namespace, name: metadata.name }, { by, atOnce: true });
    }
    if (entry !== undefined && entry !== "as it is") await store.apply(entry, { by });
  }

  #wanted(machine: SavedMachine, group: WorkloadGroup): ReturnType<typeof machineEntry> | "as it is" | undefined {
    const presence = this.#of(machine);
    const { told, isStopping } = presence;
    if (isStopping) return undefined;
    if (told === undefined || (presence.awaitsFirstStream && told.isReady)) return "as it is";
    const isHealthy = isThere(presence) && told.isReady;
    const [reason, message] = isHealthy
      ? ["Ready", "the machine says so"]
      : !isThere(presence) && !presence.awaitsFirstStream
        ? ["Disconnected", "its agent has no connection to the control plane"]
        : ["NotReady", told.reason === "" ? "the machine says so" : told.reason];
    return machineEntry(group, machine, this.#since(machine, { isHealthy, reason, message, since: "" }));
  }

  /** Equal health is as old as it was: an apply that changes nothing gives no new version. */
  #since(machine: SavedMachine, health: MachineHealth): MachineHealth {
    const { store } = this.#options;
    const before = store.get("WorkloadEntry", machine.namespace, this.entryOf(machine))?.status?.conditions?.[0];
    const isSame = before?.status === (health.isHealthy ? "True" : "False") && before.reason === health.reason;
    const since = isSame ? (before.lastTransitionTime ?? "") : "";
    return { ...health, since: since === "" ? new Date().toISOString() : since };
  }
}

function isThere({ stream, isSilent }: Presence): boolean {
  return stream !== undefined && !isSilent;
}

function keyOf({ namespace, name }: Pick<SavedMachine, "namespace" | "name">): string {
  return `${namespace}/${name}`;
}
