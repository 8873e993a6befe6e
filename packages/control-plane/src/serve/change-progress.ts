// How far the proxies are with each batch of changes: who has answered all that was meant for it, and how long the
// last of them took.
import type { ChangeSync } from "@tulle/config/api";
import type { Clock } from "@tulle/timing";
import type { AdsConnection } from "@tulle/xds";
import type { MeshState } from "./mesh-state.ts";
import type { Pusher } from "./pusher.ts";

export interface ChangeProgressOptions {
  readonly mesh: Pick<MeshState, "isPending" | "follow">;
  readonly pusher: Pick<Pusher, "connected" | "syncOf" | "follow">;
  readonly clock: Pick<Clock, "nowMs">;
  /** The last proxy has answered. */
  readonly onDone: (revision: number, sync: ChangeSync) => void;
  /** Batches that are followed; of more the oldest is given up, which some proxy does not answer. */
  readonly maxBatches: number;
}

interface Batch {
  readonly sinceMs: number;
  /** Undefined until it has been declared to them. */
  waiting: Set<AdsConnection> | undefined;
  connected: number;
  inSync: number;
  refusing: number;
}

export class ChangeProgress {
  readonly #options: ChangeProgressOptions;
  /** By revision, the oldest first. */
  readonly #open = new Map<number, Batch>();

  constructor(options: ChangeProgressOptions) {
    this.#options = options;
    // After the pusher, which has heard of the change by then.
    options.mesh.follow(() => this.#declared());
    options.pusher.follow((connection) => {
      for (const [revision, batch] of this.#open) this.#look(revision, batch, connection);
    });
  }

  /** A batch that the mesh has just heard of. Undefined where it means nothing for any proxy. */
  begin(revision: number): ChangeSync | undefined {
    const { mesh, pusher, clock, maxBatches } = this.#options;
    if (!mesh.isPending) return undefined;
    for (const oldest of this.#open.keys()) {
      if (this.#open.size < maxBatches) break;
      this.#open.delete(oldest);
    }
    const { length: connected } = pusher.connected;
    this.#open.set(revision, { sinceMs: clock.nowMs(), waiting: undefined, connected, inSync: 0, refusing: 0 });
    return this.of(revision);
  }

  /** Undefined when it is not followed any more. */
  of(revision: number): ChangeSync | undefined {
    const batch = this.#open.get(revision);
    return batch && syncOf(batch);
  }

  #declared(): void {
    const connections = this.#options.pusher.connected.map(({ connection }) => connection);
    for (const [revision, batch] of this.#open) {
      if (batch.waiting !== undefined) continue;
      batch.waiting = new Set(connections);
      batch.connected = connections.length;
      for (const connection of connections) this.#look(revision, batch, connection);
      this.#endIfDone(revision, batch);
    }
  }

  #look(revision: number, batch: Batch, connection: AdsConnection): void {
    const state = this.#options.pusher.syncOf(connection);
    if (state === "behind" || batch.waiting?.delete(connection) !== true) return;
    if (state === "gone") batch.connected -= 1;
    else batch[state] += 1;
    this.#endIfDone(revision, batch);
  }

  #endIfDone(revision: number, batch: Batch): void {
    if (batch.waiting?.size !== 0 || !this.#open.delete(revision)) return;
    const { clock, onDone } = this.#options;
    // A clock that was set back in between tells nothing.
    onDone(revision, { ...syncOf(batch), tookMs: Math.max(0, clock.nowMs() - batch.sinceMs) });
  }
}

function syncOf({ connected, inSync, refusing }: Batch): ChangeSync {
  return { connected, inSync, refusing };
}
