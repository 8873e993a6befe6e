// Keeps the last good state in memory and brings it to disk soon after each change: at once when nothing was written
// lately, and never two writes at a time.
import type { Clock } from "@tulle/timing";
import { type Logger, Trouble } from "@tulle/telemetry";
import type { ResourceTypeName } from "@tulle/xds";
import { type SavedResource, type SavedState, type SavedType, encodeState, writeState } from "./saved-state.ts";

export interface StateKeeperOptions {
  readonly path: string;
  readonly nodeId: string;
  readonly initial: SavedState;
  readonly clock: Clock;
  /**
   * A disk that is full or read-only takes nothing from the traffic: it is told once, and tried again with the next
   * change or after a while.
   */
  readonly log: Pick<Logger, "error" | "info">;
  /** Endpoints may change many times a second; the disk need not. */
  readonly minIntervalMs?: number;
}

const defaultMinIntervalMs = 200;
/** A mesh that nobody changes any more is to be on disk, too, once there is room. */
const retryAfterMs = 5000;

export class StateKeeper {
  readonly #options: StateKeeperOptions;
  readonly #types: Map<ResourceTypeName, SavedType>;
  readonly #trouble: Trouble;
  #isDirty = false;
  #hasFailed = false;
  #writing: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  #lastWriteMs = -Infinity;

  constructor(options: StateKeeperOptions) {
    this.#options = options;
    this.#types = new Map(options.initial);
    this.#trouble = new Trouble(options.log);
  }

  get state(): SavedState {
    return this.#types;
  }

  /** Full state: what was acknowledged is all that there is. */
  replace(type: ResourceTypeName, versionInfo: string, resources: ReadonlyMap<string, SavedResource>): void {
    this.#set(type, { versionInfo, resources });
  }

  /** Types asked for by name: the others stay. */
  merge(type: ResourceTypeName, versionInfo: string, resources: ReadonlyMap<string, SavedResource>): void {
    const before = this.#types.get(type)?.resources ?? new Map<string, SavedResource>();
    this.#set(type, { versionInfo, resources: new Map([...before, ...resources]) });
  }

  /** Forgets the resources that the proxy does not ask for any more. */
  keepOnly(type: ResourceTypeName, names: ReadonlySet<string>): void {
    const saved = this.#types.get(type);
    if (saved === undefined || [...saved.resources.keys()].every((name) => names.has(name))) return;
    const kept = [...saved.resources].filter(([name]) => names.has(name));
    this.#set(type, { ...saved, resources: new Map(kept) });
  }

  /**
   * Resolves when all changes so far are on disk, or could not be written; nothing is tried again by itself after that.
   */
  async flush(): Promise<void> {
    this.#isDirty ||= this.#hasFailed;
    this.#cancel();
    while (this.#isDirty || this.#writing !== undefined) {
      this.#writing ??= this.#write();
      await this.#writing;
      this.#cancel();
    }
  }

  #set(type: ResourceTypeName, saved: SavedType): void {
    this.#types.set(type, saved);
    this.#isDirty = true;
    this.#schedule();
  }

  #cancel(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  /** A change is written as soon as the last write is old enough, what could not be written after a while. */
  #schedule(): void {
    if (this.#writing !== undefined) return;
    this.#cancel();
    const { clock, minIntervalMs = defaultMinIntervalMs } = this.#options;
    const pauseMs = this.#isDirty ? minIntervalMs : retryAfterMs;
    this.#cancelTimer = clock.after(Math.max(0, this.#lastWriteMs + pauseMs - clock.nowMs()), () => {
      this.#cancelTimer = undefined;
      this.#writing ??= this.#write();
    });
  }

  async #write(): Promise<void> {
    const { path: file, nodeId, clock } = this.#options;
    this.#isDirty = false;
    this.#lastWriteMs = clock.nowMs();
    try {
      await writeState(file, encodeState(this.#types, nodeId));
      this.#hasFailed = false;
      this.#trouble.end("the state can be saved again", { file });
    } catch (error) {
      this.#hasFailed = true;
      this.#trouble.begin(`cannot save the state: ${String(error)}`, { file });
    }
    this.#writing = undefined;
    if (this.#isDirty || this.#hasFailed) this.#schedule();
  }
}
