// Who may join, who has, and what came of each try: one text of the control plane's state, written before anybody is
// told of a change. Of a token it holds the hash alone.
import { randomBytes } from "node:crypto";
import { secretHash } from "@tulle/identity";
import type { MachineEvent } from "@tulle/config/api";
import type { KeptTexts } from "../state/state-folder.ts";

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

const fileName = "machines.json";
export const maxTokens = 1000;
export const maxMachines = 1000;
const maxEvents = 500;
/** Of those. Anybody can be refused as often as they like, and drives out nothing else by it. */
const maxRefusals = 200;
/** A token that was used or has ended is known a while, so that who shows it is told what it was. */
const rememberMs = 7 * 24 * 3_600_000;

export class MachineRegister {
  readonly #texts: Pick<KeptTexts, "write">;
  readonly #tokens = new Map<string, SavedToken>();
  /** By `namespace/name`. */
  readonly #machines = new Map<string, SavedMachine>();
  readonly #bySerial = new Map<string, string>();
  readonly #listeners = new Set<() => void>();
  #events: readonly MachineEvent[];
  #writing: Promise<void> = Promise.resolve();
  #isWriteQueued = false;

  private constructor(texts: Pick<KeptTexts, "write">, saved: Saved) {
    this.#texts = texts;
    this.#events = saved.events;
    for (const token of saved.tokens) this.#tokens.set(token.id, token);
    for (const machine of saved.machines) this.#put(machine);
  }

  /** @throws where the file is there and cannot be read: with an empty one every machine would be cut off. */
  static async open(texts: Pick<KeptTexts, "read" | "write" | "placeOf">): Promise<MachineRegister> {
    const text = (await texts.read(fileName))?.text;
    try {
      return new MachineRegister(texts, parseSaved(text));
    } catch (error) {
      throw new Error(`${texts.placeOf(fileName)} cannot be read: ${(error as Error).message}`, { cause: error });
    }
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

  /** Called after machines have come, gone or changed. */
  follow(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Resolves to the secret once the token is kept; it is nowhere else. Undefined where there are too many. */
  async addToken(token: Omit<SavedToken, "id" | "hash">): Promise<{ id: string; secret: string } | undefined> {
    this.#forget(token.madeMs);
    if (this.#tokens.size >= maxTokens) return undefined;
    const id = randomBytes(6).toString("hex");
    const secret = randomBytes(32).toString("base64url");
    this.#tokens.set(id, { ...token, id, hash: secretHash(secret) });
    await this.save();
    return { id, secret };
  }

  /** Takes effect at once; `save` says when it is on disk. */
  setToken(token: SavedToken): void {
    this.#tokens.set(token.id, token);
  }

  setMachine(machine: SavedMachine): void {
    this.#put(machine);
    for (const listener of this.#listeners) listener();
  }

  /** A name that was never given. */
  newName(namespace: string, group: string): string {
    for (;;) {
      const name = `${group}-${randomBytes(4).toString("hex")}`;
      if (!this.#machines.has(keyOf({ namespace, name }))) return name;
    }
  }

  /** Equal ones in a row are one, with their number: anybody can be refused as often as they like. */
  note(event: Omit<MachineEvent, "times">): void {
    const last = this.#events.at(-1);
    const isSame =
      last !== undefined && last.what === event.what && last.detail === event.detail && last.peer === event.peer;
    const kept = isSame ? this.#events.slice(0, -1) : this.#events;
    const events = [...kept, { ...event, times: isSame ? last.times + 1 : 1 }];
    const isRefusal = event.what === "refused";
    const alike = events.filter(({ what }) => (what === "refused") === isRefusal);
    const most = isRefusal ? maxRefusals : maxEvents - maxRefusals;
    this.#events = alike.length > most ? events.filter((each) => each !== alike[0]) : events;
  }

  /** Resolves once everything up to now is on disk. */
  save(): Promise<void> {
    if (!this.#isWriteQueued) {
      this.#isWriteQueued = true;
      this.#writing = this.#writing
        .catch(() => undefined)
        .then(() => {
          this.#isWriteQueued = false;
          return this.#texts.write(fileName, this.#text());
        });
    }
    return this.#writing;
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

  #text(): string {
    const machines = [...this.#machines.values()];
    const saved: Saved = { tokens: this.tokens, machines, events: this.#events };
    return `${JSON.stringify(saved, undefined, 1)}\n`;
  }
}

function keyOf({ namespace, name }: Pick<SavedMachine, "namespace" | "name">): string {
  return `${namespace}/${name}`;
}

/** It was written in one step, by us: what is looked at is whether it is that. */
function parseSaved(text: string | undefined): Saved {
  if (text === undefined) return { tokens: [], machines: [], events: [] };
  const saved = JSON.parse(text) as Saved;
  const isWhole =
    saved.tokens.every(({ id, hash, untilMs }) => typeof id === "string" && hash !== "" && Number.isFinite(untilMs)) &&
    saved.machines.every(({ name, certificates }) => typeof name === "string" && typeof certificates === "object") &&
    Array.isArray(saved.events);
  if (!isWhole) throw new Error("it is no register of machines");
  return saved;
}
