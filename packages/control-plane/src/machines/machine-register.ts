// Who may join, who has, and what came of each try: one text of the control plane's state, written before anybody is
// told of a change. Of a token it holds the hash alone. Several control planes may share it: each writes over what it
// has read, and judges a change anew where another was faster.
import type { MachineEvent } from "@tulle/config/api";
import type { KeptTexts } from "../state/state-folder.ts";
import { parseRegister, type RegisterState, type SavedMachine, type SavedToken, withEvent } from "./register-state.ts";

export type { SavedMachine, SavedToken } from "./register-state.ts";
export { maxMachines, maxTokens } from "./register-state.ts";

const fileName = "machines.json";
/** Of one change: others write seldom. */
const maxTries = 32;

export type RegisterTexts = Pick<KeptTexts, "readVersion" | "writeOver" | "placeOf" | "follow">;

/** Reads what there is, and sets what is to be. It is called anew where another has written meanwhile. */
type Make<T> = (state: RegisterState) => T;

interface Waiting {
  readonly make: Make<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export class MachineRegister {
  readonly #texts: RegisterTexts;
  readonly #onProblem: (reason: string) => void;
  readonly #listeners = new Set<() => void>();
  readonly #unfollow: () => void;
  #state: RegisterState;
  #version: string | undefined;
  /** Written down, and kept with the next change. */
  #notes: readonly MachineEvent[] = [];
  #waiting: Waiting[] = [];
  /** Reads and writes, one after another. */
  #working: Promise<void> = Promise.resolve();
  #isReadQueued = false;

  private constructor(texts: RegisterTexts, read: Read, onProblem: (reason: string) => void) {
    this.#texts = texts;
    this.#onProblem = onProblem;
    this.#state = read.state;
    this.#version = read.version;
    this.#unfollow = texts.follow?.(() => void this.refresh()) ?? ((): void => undefined);
  }

  /** @throws where the text is there and cannot be read: with an empty one every machine would be cut off. */
  static async open(
    texts: RegisterTexts,
    onProblem: (reason: string) => void = () => undefined,
  ): Promise<MachineRegister> {
    return new MachineRegister(texts, await readTexts(texts), onProblem);
  }

  close(): void {
    this.#unfollow();
  }

  get tokens(): readonly SavedToken[] {
    return this.#state.tokens;
  }

  /** Those that have not left. */
  get machines(): readonly SavedMachine[] {
    return this.#state.machines;
  }

  /** Oldest first. */
  get events(): readonly MachineEvent[] {
    return this.#notes.reduce(withEvent, this.#state.events);
  }

  token(id: string): SavedToken | undefined {
    return this.#state.token(id);
  }

  machine(namespace: string, name: string): SavedMachine | undefined {
    return this.#state.machine(namespace, name);
  }

  /** Whose the certificate is; one that has left, too. */
  machineOf(serial: string | undefined): SavedMachine | undefined {
    return this.#state.machineOf(serial);
  }

  /** Called after machines have come, gone or changed. */
  follow(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Kept with the next change. */
  note(event: Omit<MachineEvent, "times">): void {
    this.#notes = withEvent(this.#notes, { ...event, times: 1 });
  }

  /** Resolves to what `make` says once what it has set is kept. Rejects, with nothing changed, where it cannot be. */
  change<T>(make: Make<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.push({ make, resolve, reject });
    if (this.#waiting.length === 1) this.#working = this.#working.then(() => this.#keep());
    return promise as Promise<T>;
  }

  /** Resolves once it is known what others have written up to now, where others can. Never rejects. */
  refresh(): Promise<void> {
    if (this.#texts.follow === undefined || this.#isReadQueued) return this.#working;
    this.#isReadQueued = true;
    this.#working = this.#working.then(async () => {
      this.#isReadQueued = false;
      try {
        await this.#read();
      } catch (error) {
        this.#onProblem((error as Error).message);
      }
    });
    return this.#working;
  }

  /** All that wait, as one text. */
  async #keep(): Promise<void> {
    const batch = this.#waiting;
    this.#waiting = [];
    try {
      const done = await this.#write(batch);
      for (const [index, { resolve, reject }] of batch.entries()) {
        const outcome = done[index]!;
        if ("error" in outcome) reject(outcome.error);
        else resolve(outcome.value);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  async #write(batch: readonly Waiting[]): Promise<readonly ({ value: unknown } | { error: unknown })[]> {
    for (let tries = 0; tries < maxTries; tries += 1) {
      const draft = this.#state.copy();
      const done = batch.map(({ make }) => {
        try {
          return { value: make(draft) };
        } catch (error) {
          return { error };
        }
      });
      if (!draft.isChanged) return done;
      const notes = this.#notes;
      for (const note of notes) draft.note(note);
      this.#notes = [];
      let written: Awaited<ReturnType<RegisterTexts["writeOver"]>>;
      try {
        written = await this.#texts.writeOver(fileName, draft.text(), this.#version);
      } finally {
        // With those that came meanwhile.
        if (written === undefined) this.#notes = this.#notes.reduce(withEvent, notes);
      }
      if (written !== undefined) {
        this.#version = written.version;
        this.#take(draft, draft.hasChangedMachines);
        return done;
      }
      await this.#read();
    }
    throw new Error(`${this.#texts.placeOf(fileName)} is written by others all the time`);
  }

  async #read(): Promise<void> {
    const { state, version, isThere } = await readTexts(this.#texts);
    if (version !== undefined && version === this.#version) return;
    this.#version = version;
    if (isThere) return this.#take(state, true);
    // Somebody has removed it. Whoever has joined is known all the same.
    if (this.#state.machines.length + this.#state.tokens.length > 0) {
      this.#onProblem(`${this.#texts.placeOf(fileName)} is gone: it is written again with the next change`);
    }
  }

  #take(state: RegisterState, hasChanged: boolean): void {
    this.#state = state;
    if (hasChanged) for (const listener of this.#listeners) listener();
  }
}

interface Read {
  readonly state: RegisterState;
  readonly version: string | undefined;
  readonly isThere: boolean;
}

async function readTexts(texts: RegisterTexts): Promise<Read> {
  const { text, version } = await texts.readVersion(fileName);
  try {
    return { state: parseRegister(text), version, isThere: text !== undefined };
  } catch (error) {
    throw new Error(`${texts.placeOf(fileName)} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}
