// How long resources live that were sent with a time to live (service.discovery.v3.Resource.ttl): each response that
// names one of them, with or without its content, begins its time anew.
import type { Clock } from "@tulle/timing";
import type { ResourceTypeName } from "./resource-types.ts";

type State = { readonly kind: "lives"; readonly cancel: () => void } | { readonly kind: "expired" };

/** Longer than any timer of Node can wait, and than anybody means. */
const longestTtlMs = 2 ** 31 - 1;

export class ResourceTtls {
  readonly #clock: Clock;
  readonly #onExpired: (type: ResourceTypeName, name: string) => void;
  readonly #states = new Map<ResourceTypeName, Map<string, State>>();

  constructor(clock: Clock, onExpired: (type: ResourceTypeName, name: string) => void) {
    this.#clock = clock;
    this.#onExpired = onExpired;
  }

  /** The resource has come, or is said to live on. Without a time to live it stays until it is left out. */
  renew(type: ResourceTypeName, name: string, ttlMs: number | undefined): void {
    this.forget(type, name);
    if (ttlMs === undefined) return;
    let states = this.#states.get(type);
    if (states === undefined) this.#states.set(type, (states = new Map()));
    const cancel = this.#clock.after(Math.min(Math.max(0, ttlMs), longestTtlMs), () => {
      states.set(name, { kind: "expired" });
      this.#onExpired(type, name);
    });
    states.set(name, { kind: "lives", cancel });
  }

  forget(type: ResourceTypeName, name: string): void {
    const states = this.#states.get(type);
    const state = states?.get(name);
    if (state?.kind === "lives") state.cancel();
    states?.delete(name);
  }

  /** Whether it has not been renewed since its time was over. */
  isExpired(type: ResourceTypeName, name: string): boolean {
    return this.#states.get(type)?.get(name)?.kind === "expired";
  }

  close(): void {
    for (const states of this.#states.values()) {
      for (const state of states.values()) if (state.kind === "lives") state.cancel();
    }
    this.#states.clear();
  }
}
