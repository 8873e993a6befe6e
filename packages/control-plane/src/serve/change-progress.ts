// How far the proxies are with each batch of changes: who has answered all that was meant for it, and how long the
// last of them took.
import type { ChangeSync, RouteRevision } from "@tulle/config/api";
import type { Clock } from "@tulle/timing";
import type { AdsConnection } from "@tulle/xds";
import type { MeshState } from "./mesh-state.ts";
import type { Pusher } from "./pusher.ts";

/** Told of one batch. */
const maxRevisions = 8;
/** Counted of one batch. */
const maxCountedRevisions = 100;

export interface ChangeProgressOptions {
  readonly mesh: Pick<MeshState, "isPending" | "follow">;
  readonly pusher: Pick<Pusher, "connected" | "syncOf" | "follow">;
  readonly clock: Pick<Clock, "nowMs">;
  /** The last proxy has answered. */
  readonly onDone: (batch: number, sync: ChangeSync) => void;
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
  /** By what tells one from another. */
  readonly revisions: Map<string, RouteRevision>;
}

export class ChangeProgress {
  readonly #options: ChangeProgressOptions;
  /** By number, the oldest first. */
  readonly #open = new Map<number, Batch>();

  constructor(options: ChangeProgressOptions) {
    this.#options = options;
    // After the pusher, which has heard of the change by then.
    options.mesh.follow(() => this.#declared());
    options.pusher.follow({
      settled: (connection) => {
        for (const [number, batch] of this.#open) this.#look(number, batch, connection);
      },
      rerouted: (connection, revisions) => {
        for (const batch of this.#open.values()) {
          if (batch.waiting?.has(connection) !== true) continue;
          for (const each of revisions()) {
            if (batch.revisions.size === maxCountedRevisions) break;
            batch.revisions.set(`${each.virtualHost} ${each.before ?? ""} ${each.after ?? ""}`, each);
          }
        }
      },
    });
  }

  /** A batch that the mesh has just heard of. Undefined where it means nothing for any proxy. */
  begin(number: number): ChangeSync | undefined {
    const { mesh, pusher, clock, maxBatches } = this.#options;
    if (!mesh.isPending) return undefined;
    for (const oldest of this.#open.keys()) {
      if (this.#open.size < maxBatches) break;
      this.#open.delete(oldest);
    }
    const { length: connected } = pusher.connected;
    this.#open.set(number, {
      sinceMs: clock.nowMs(),
      waiting: undefined,
      connected,
      inSync: 0,
      refusing: 0,
      revisions: new Map(),
    });
    return this.of(number);
  }

  /** Undefined when it is not followed any more. */
  of(number: number): ChangeSync | undefined {
    const batch = this.#open.get(number);
    return batch && syncOf(batch);
  }

  #declared(): void {
    const connections = this.#options.pusher.connected.map(({ connection }) => connection);
    for (const [number, batch] of this.#open) {
      if (batch.waiting !== undefined) continue;
      batch.waiting = new Set(connections);
      batch.connected = connections.length;
      for (const connection of connections) this.#look(number, batch, connection);
      this.#endIfDone(number, batch);
    }
  }

  #look(number: number, batch: Batch, connection: AdsConnection): void {
    const state = this.#options.pusher.syncOf(connection);
    if (state === "behind" || batch.waiting?.delete(connection) !== true) return;
    if (state === "gone") batch.connected -= 1;
    else batch[state] += 1;
    this.#endIfDone(number, batch);
  }

  #endIfDone(number: number, batch: Batch): void {
    if (batch.waiting?.size !== 0 || !this.#open.delete(number)) return;
    const { clock, onDone } = this.#options;
    // A clock that was set back in between tells nothing.
    onDone(number, { ...syncOf(batch), tookMs: Math.max(0, clock.nowMs() - batch.sinceMs) });
  }
}

function syncOf({ connected, inSync, refusing, revisions }: Batch): ChangeSync {
  const sync = { connected, inSync, refusing };
  if (revisions.size === 0) return sync;
  const told = revisions.values().take(maxRevisions).toArray();
  const more = revisions.size - told.length;
  return { ...sync, revisions: told, ...(more === 0 ? {} : { moreRevisions: more }) };
}
