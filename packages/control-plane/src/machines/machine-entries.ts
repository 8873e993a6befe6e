// Keeps the WorkloadEntries of machines as the machines are: there while one is, well while its stream stands and its
// probe says so, gone when it stops, or a while after it has vanished.
import type { Clock } from "@tulle/timing";
import { type ResourceOf, type Store, StoreRefusal } from "@tulle/config";
import type { Logger } from "@tulle/telemetry";
import { addressHolder } from "./machine-address.ts";
import { machineAnnotation } from "../snapshot/addressed-workloads.ts";
import type { Leadership } from "../state/leadership.ts";
import {
  entryName,
  healthOf,
  keeperAnnotation,
  machineEntry,
  type MachineHealth,
  saysAll,
  type WorkloadGroup,
} from "./machine-entry.ts";
import type { MachineRegister, SavedMachine } from "./machine-register.ts";

/** Of several control planes whoever has a machine's stream keeps its entry. */
export interface Replicas {
  /** This one's name, which a restart does not change. */
  readonly own: string;
  isAlive(name: string): boolean;
  /** Calls back after any has come or gone. Returns how to end that. */
  follow(listener: () => void): () => void;
}

export interface MachineEntriesOptions {
  readonly store: Store;
  readonly register: MachineRegister;
  /** How long the entry of a machine stays that says nothing any more. */
  readonly graceMs: number;
  /** Undefined where there is one control plane alone. */
  readonly replicas?: Replicas | undefined;
  /** Whoever leads removes what a replica that is gone has left. */
  readonly leadership?: Leadership | undefined;
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
  readonly #ends: readonly (() => void)[];
  #working: Promise<void> = Promise.resolve();
  #isResting = false;

  constructor(options: MachineEntriesOptions) {
    this.#options = options;
    for (const machine of options.register.machines) {
      const keeper = this.#keeperOf(machine);
      if (keeper === undefined || keeper === this.#own) this.#await(machine);
    }
    const unwatch = options.store.watch((changes) => {
      if (!changes.some(({ resource }) => resource.kind === "WorkloadGroup")) return;
      for (const machine of options.register.machines) {
        if (!this.#isElsewhere(machine)) void this.#update(machine);
      }
    });
    const look = (): void => this.#takeUpLeft();
    const ends = [options.replicas?.follow(look), options.leadership?.follow(look)];
    this.#ends = [unwatch, ...ends.filter((end) => end !== undefined)];
    look();
  }

  get #own(): string {
    return this.#options.replicas?.own ?? "";
  }

  /** Of an earlier run, or of a replica that is gone: its streams may only be on their way. */
  #await(machine: SavedMachine): void {
    this.#of(machine).awaitsFirstStream = true;
    this.#startGrace(machine, Math.max(this.#options.graceMs, leastGraceAtStartMs));
  }

  #takeUpLeft(): void {
    const { register, replicas, leadership } = this.#options;
    if (replicas === undefined || leadership?.isLeader === false || this.#isResting) return;
    for (const machine of register.machines) {
      const keeper = this.#keeperOf(machine);
      if (keeper === undefined || keeper === this.#own || replicas.isAlive(keeper)) continue;
      const { stream, awaitsFirstStream } = this.#of(machine);
      if (stream === undefined && !awaitsFirstStream) this.#await(machine);
    }
  }

  /** The machine's name for people: whether it is connected, and well. */
  stateOf(machine: SavedMachine): "healthy" | "unhealthy" | "disconnected" {
    if (this.#isElsewhere(machine)) {
      const health = healthOf(this.#listed(machine)!);
      if (health?.status === "True") return "healthy";
      return health?.reason === "Disconnected" ? "disconnected" : "unhealthy";
    }
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
  listedAs(machine: Pick<SavedMachine, "namespace" | "name">): string {
    return this.#listed(machine)?.metadata.name ?? "";
  }

  #listed({ namespace, name }: Pick<SavedMachine, "namespace" | "name">): ResourceOf<"WorkloadEntry"> | undefined {
    const entries = this.#options.store.list("WorkloadEntry", namespace);
    return entries.find(({ metadata }) => metadata.annotations?.[machineAnnotation] === name);
  }

  /** Undefined while there is no entry. */
  #keeperOf(machine: SavedMachine): string | undefined {
    const entry = this.#listed(machine);
    return entry && (entry.metadata.annotations?.[keeperAnnotation] ?? "");
  }

  /** Another replica has its stream, hears what it says, and tells of it. */
  #isElsewhere(machine: SavedMachine): boolean {
    const { replicas } = this.#options;
    const keeper = this.#keeperOf(machine);
    if (replicas === undefined || keeper === undefined || keeper === replicas.own) return false;
    return this.#of(machine).stream === undefined && replicas.isAlive(keeper);
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
    if (this.#isResting) return;
    // It has come to another one before this one saw it go, or has said that it stops.
    if (this.#isElsewhere(machine) || this.#listed(machine) === undefined) return this.#forget(machine);
    this.#startGrace(machine, this.#options.graceMs);
    void this.#update(machine);
  }

  #forget(machine: Pick<SavedMachine, "namespace" | "name">): void {
    const key = keyOf(machine);
    this.#presence.get(key)?.cancelGrace();
    this.#presence.get(key)?.cancelSilence();
    this.#presence.delete(key);
  }

  told(machine: SavedMachine, isReady: boolean, reason: string): Promise<void> {
    if (this.#isElsewhere(machine)) return Promise.resolve();
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
    this.#forget(machine);
    return this.#update(machine);
  }

  /** From here on streams end because this control plane does, which says nothing of machines. */
  rest(): void {
    this.#isResting = true;
  }

  async close(): Promise<void> {
    for (const end of this.#ends) end();
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
      if (isThere(presence) || this.#isResting) return;
      const { replicas, leadership, log } = this.#options;
      const keeper = this.#keeperOf(machine) ?? this.#own;
      const isOthers = keeper !== this.#own && (replicas?.isAlive(keeper) === true || leadership?.isLeader === false);
      if (isOthers) return this.#forget(machine);
      log.warning("a machine has vanished: its entry goes", { machine: keyOf(machine) });
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
    if (machine === undefined) this.#forget({ namespace, name });
    const by = `the machine ${name}`;
    const before = store
      .list("WorkloadEntry", namespace)
      .filter(({ metadata }) => metadata.annotations?.[machineAnnotation] === name);
    for (const { metadata } of before) {
      if (entry === "as it is" || metadata.name === entry?.metadata.name) continue;
      await store.delete({ kind: "WorkloadEntry", namespace, name: metadata.name }, { by, atOnce: true });
    }
    if (entry === undefined || entry === "as it is") return;
    const there = store.get("WorkloadEntry", namespace, entry.metadata.name);
    if (there === undefined || !saysAll(there, entry)) await store.apply(entry, { by });
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
    const health = this.#since(machine, { isHealthy, reason, message, since: "" });
    return machineEntry(group, machine, health, this.#own);
  }

  /** Equal health is as old as it was: an apply that changes nothing gives no new version. */
  #since(machine: SavedMachine, health: MachineHealth): MachineHealth {
    const { store } = this.#options;
    const entry = store.get("WorkloadEntry", machine.namespace, this.entryOf(machine));
    const before = entry && healthOf(entry);
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
