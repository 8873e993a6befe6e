// What the register of machines holds at one moment: tokens, machines, and what came of each try. A change is made to
// a copy, which counts once it is kept.
import { randomBytes } from "node:crypto";
import type { MachineEvent } from "@tulle/config/api";
import { secretHash } from "@tulle/identity";

export interface SavedToken {
  readonly id: string;
  readonly hash: string;
  readonly group: string;
  readonly namespace: string;
  /** Where the machine may be reached; empty: where its call comes from, and nowhere else. */
  readonly addresses: readonly string[];
  readonly madeBy: string;
  readonly madeMs: number;
  readonly untilMs: number;
  /** Name of the machine that has joined by it. */
  readonly usedBy?: string;
  readonly isRevoked?: true;
}

export interface SavedMachine {
  /** As a pod's: unique in its namespace, and never given twice. */
  readonly name: string;
  readonly namespace: string;
  readonly group: string;
  readonly serviceAccount: string;
  /** Its token's. */
  readonly addresses: readonly string[];
  readonly address: string;
  readonly hostname: string;
  readonly tokenId: string;
  readonly joinedMs: number;
  /** Those that have not ended yet, by serial: which of a group's machines calls is known by them alone. */
  readonly certificates: Readonly<Record<string, number>>;
  /** It has left; its certificates are known until they end, so that they open nothing. */
  readonly isGone?: true;
}

interface Saved {
  readonly tokens: readonly SavedToken[];
  readonly machines: readonly SavedMachine[];
  readonly events: readonly MachineEvent[];
}

export const maxTokens = 1000;
export const maxMachines = 1000;
const maxEvents = 500;
/** Of those. Anybody can be refused as often as they like, and drives out nothing else by it. */
const maxRefusals = 200;
/** A token that was used or has ended is known a while, so that who shows it is told what it was. */
const rememberMs = 7 * 24 * 3_600_000;

export class RegisterState {
  readonly #tokens = new Map<string, SavedToken>();
  /** By `namespace/name`. */
  readonly #machines = new Map<string, SavedMachine>();
  readonly #bySerial = new Map<string, string>();
  #events: readonly MachineEvent[];
  /** Something was set, or written down, since it was copied. */
  isChanged = false;
  hasChangedMachines = false;

  constructor({ tokens, machines, events }: Saved) {
    this.#events = events;
    for (const token of tokens) this.#tokens.set(token.id, token);
    for (const machine of machines) this.#put(machine);
  }

  copy(): RegisterState {
    return new RegisterState(this.#saved());
  }

  get tokens(): readonly SavedToken[] {
    return [...this.#tokens.values()];
  }

  /** Those that have not left. */
  get machines(): readonly SavedMachine[] {
    return [...this.#machines.values()].filter(({ isGone }) => isGone !== true);
  }

  /** Oldest first. */
  get events(): readonly MachineEvent[] {
    return this.#events;
  }

  token(id: string): SavedToken | undefined {
    return this.#tokens.get(id);
  }

  machine(namespace: string, name: string): SavedMachine | undefined {
    const machine = this.#machines.get(keyOf({ namespace, name }));
    return machine?.isGone === true ? undefined : machine;
  }

  /** Whose the certificate is; one that has left, too. */
  machineOf(serial: string | undefined): SavedMachine | undefined {
    const key = serial === undefined ? undefined : this.#bySerial.get(serial);
    return key === undefined ? undefined : this.#machines.get(key);
  }

  /** The secret is nowhere else. Undefined where there are too many. */
  addToken(token: Omit<SavedToken, "id" | "hash">): { id: string; secret: string } | undefined {
    this.#forget(token.madeMs);
    if (this.#tokens.size >= maxTokens) return undefined;
    const id = randomBytes(6).toString("hex");
    const secret = randomBytes(32).toString("base64url");
    this.setToken({ ...token, id, hash: secretHash(secret) });
    return { id, secret };
  }

  setToken(token: SavedToken): void {
    this.#tokens.set(token.id, token);
    this.isChanged = true;
  }

  setMachine(machine: SavedMachine): void {
    this.#put(machine);
    this.isChanged = true;
    this.hasChangedMachines = true;
  }

  /** A name that was never given. */
  newName(namespace: string, group: string): string {
    for (;;) {
      const name = `${group}-${randomBytes(4).toString("hex")}`;
      if (!this.#machines.has(keyOf({ namespace, name }))) return name;
    }
  }

  note(event: MachineEvent): void {
    this.#events = withEvent(this.#events, event);
    this.isChanged = true;
  }

  text(): string {
    return `${JSON.stringify(this.#saved())}\n`;
  }

  /** What ended long ago. */
  #forget(nowMs: number): void {
    for (const { id, untilMs } of this.#tokens.values()) {
      if (untilMs + rememberMs < nowMs) this.#tokens.delete(id);
    }
    for (const [key, machine] of this.#machines) {
      if (machine.isGone !== true || Object.values(machine.certificates).some((untilMs) => untilMs > nowMs)) continue;
      this.#machines.delete(key);
      for (const serial of Object.keys(machine.certificates)) this.#bySerial.delete(serial);
    }
  }

  #put(machine: SavedMachine): void {
    const key = keyOf(machine);
    this.#machines.set(key, machine);
    for (const serial of Object.keys(machine.certificates)) this.#bySerial.set(serial, key);
  }

  #saved(): Saved {
    return { tokens: this.tokens, machines: [...this.#machines.values()], events: this.#events };
  }
}

/** Equal ones in a row are one, with their number: anybody can be refused as often as they like. */
export function withEvent(before: readonly MachineEvent[], event: MachineEvent): readonly MachineEvent[] {
  const last = before.at(-1);
  const isSame =
    last !== undefined && last.what === event.what && last.detail === event.detail && last.peer === event.peer;
  const kept = isSame ? before.slice(0, -1) : before;
  const events = [...kept, { ...event, times: isSame ? last.times + event.times : event.times }];
  const isRefusal = event.what === "refused";
  const alike = events.filter(({ what }) => (what === "refused") === isRefusal);
  const most = isRefusal ? maxRefusals : maxEvents - maxRefusals;
  return alike.length > most ? events.filter((each) => each !== alike[0]) : events;
}

/** It was written in one step, by us: what is looked at is whether it is that. @throws */
export function parseRegister(text: string | undefined): RegisterState {
  if (text === undefined) return new RegisterState({ tokens: [], machines: [], events: [] });
  const saved = JSON.parse(text) as Saved;
  const isWhole =
    saved.tokens.every(({ id, hash, untilMs }) => typeof id === "string" && hash !== "" && Number.isFinite(untilMs)) &&
    saved.machines.every(({ name, certificates }) => typeof name === "string" && typeof certificates === "object") &&
    Array.isArray(saved.events);
  if (!isWhole) throw new Error("it is no register of machines");
  return new RegisterState(saved);
}

function keyOf({ namespace, name }: Pick<SavedMachine, "namespace" | "name">): string {
  return `${namespace}/${name}`;
}
