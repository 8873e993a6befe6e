// What has been accepted and waits for what it needs before it serves: a cluster for endpoints, a listener for routes,
// both for secrets. It serves once all has come or was waited for long enough; until then the version before it does.
import type { Clock } from "@tulle/timing";
import type { Gauge, Logger } from "@tulle/telemetry";
import type { SecretSlot } from "../tls/secret-slot.ts";

export interface Wait {
  /** For the log: `endpoints`, `routes` … */
  readonly what: string;
  /** initial_fetch_timeout; 0 = for ever. */
  readonly timeoutMs: number;
  isOver(): boolean;
  /** It was waited for long enough. */
  onTimeout?(): void;
}

export interface WarmingOptions<C> {
  readonly clock: Clock;
  readonly log: Logger;
  /** How many of the kind warm, those of other tables included. */
  readonly count: Gauge;
  readonly kind: "cluster" | "listener";
  /** All has come, or was given up; it warms no more. */
  readonly onWarm: (name: string, compiled: C) => void | Promise<void>;
}

interface Entry<C> {
  readonly compiled: C;
  readonly waits: Set<Wait>;
  readonly cancelTimeouts: (() => void)[];
}

export class Warming<C> {
  readonly #options: WarmingOptions<C>;
  readonly #entries = new Map<string, Entry<C>>();

  constructor(options: WarmingOptions<C>) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  compiled(): readonly C[] {
    return [...this.#entries.values()].map(({ compiled }) => compiled);
  }

  /** In the place of an earlier version of that name. */
  begin(name: string, compiled: C, waits: readonly Wait[]): void {
    this.stop(name);
    const entry: Entry<C> = { compiled, waits: new Set(waits), cancelTimeouts: [] };
    this.#entries.set(name, entry);
    const { clock, log, kind, count } = this.#options;
    count.add(1);
    for (const wait of waits) {
      if (wait.timeoutMs === 0) continue;
      const giveUp = (): void => {
        if (!wait.isOver()) {
          log.warning(`${wait.what} did not come in time`, { [kind]: name });
          wait.onTimeout?.();
        }
        entry.waits.delete(wait);
        void this.check();
      };
      entry.cancelTimeouts.push(clock.after(wait.timeoutMs, giveUp));
    }
  }

  /** To be called when something may have come. What needs no waiting becomes warm within the call. */
  async check(): Promise<void> {
    for (const [name, entry] of this.#entries) {
      for (const wait of entry.waits) if (wait.isOver()) entry.waits.delete(wait);
      if (entry.waits.size > 0) continue;
      this.stop(name);
      const done = this.#options.onWarm(name, entry.compiled);
      if (done !== undefined) await done;
    }
  }

  /** What was warming under that name; undefined = nothing. */
  stop(name: string): C | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined) return undefined;
    this.#entries.delete(name);
    this.#options.count.add(-1);
    for (const cancel of entry.cancelTimeouts) cancel();
    return entry.compiled;
  }

  close(): void {
    for (const name of this.#entries.keys()) this.stop(name);
  }
}

/** Only what has not come yet. */
export function pending(waits: readonly Wait[]): readonly Wait[] {
  return waits.filter((wait) => !wait.isOver());
}

export function secretWaits(slots: ReadonlySet<SecretSlot>): readonly Wait[] {
  return [...slots].map((slot) => ({
    what: `the secret '${slot.name}'`,
    timeoutMs: slot.initialFetchTimeoutMs,
    isOver: () => slot.current !== undefined,
    onTimeout: () => slot.onTimeout(),
  }));
}
