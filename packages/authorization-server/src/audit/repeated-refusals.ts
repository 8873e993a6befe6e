// Which refusals are one event that is repeated: whoever asks a thousand times a second for what he does not get fills
// neither the audit log nor the log. Of one network only so many different ones are told apart, and of all together.
import type { AuditEvent } from "./audit-log.ts";
import { networkOf } from "../http/client-address.ts";

export const repetitionLimits = {
  /** From the first one on; then there is a new row. */
  windowMs: 10 * 60_000,
  /** Different refusals of one network in that time; what is beyond counts for one of the same error. */
  ofNetwork: 20,
  /** Of all networks. */
  inWhole: 1000,
} as const;

interface Repeated {
  readonly id: string;
  readonly errorId: string | undefined;
  readonly firstAtMs: number;
  readonly network: string;
  lastAtMs: number;
  count: number;
}

export interface RepetitionCount {
  /** Of the row. */
  readonly id: string;
  readonly count: number;
  readonly lastAtMs: number;
}

export class RepeatedRefusals {
  readonly #onFirstRepetition: (event: AuditEvent) => void;
  /** By what makes two the same, the oldest first. */
  readonly #known = new Map<string, Repeated>();
  readonly #ofNetwork = new Map<string, number>();
  #changed = new Set<Repeated>();

  constructor(onFirstRepetition: (event: AuditEvent) => void) {
    this.#onFirstRepetition = onFirstRepetition;
  }

  /** Undefined where it is none yet: `id` is its row from now on. Otherwise the error id of the first one. */
  fold(event: AuditEvent, id: string, nowMs: number): string | undefined {
    this.#forgetOld(nowMs);
    const network = networkOf(event.address ?? "");
    const { key, isFull } = this.#keyOf(event, network);
    const known = this.#known.get(key);
    if (known === undefined) {
      const errorId = event.errorId;
      this.#known.set(key, { id, errorId, firstAtMs: nowMs, network, lastAtMs: nowMs, count: 1 });
      if (!isFull) this.#ofNetwork.set(network, (this.#ofNetwork.get(network) ?? 0) + 1);
      return undefined;
    }
    known.count += 1;
    known.lastAtMs = nowMs;
    this.#changed.add(known);
    if (known.count === 2) this.#onFirstRepetition({ ...event, errorId: known.errorId });
    return known.errorId ?? event.errorId ?? "";
  }

  /** Those that have grown since they were taken last. */
  takeCounts(): readonly RepetitionCount[] {
    const counts = [...this.#changed].map(({ id, count, lastAtMs }) => ({ id, count, lastAtMs }));
    this.#changed = new Set();
    return counts;
  }

  #keyOf(event: AuditEvent, network: string): { readonly key: string; readonly isFull: boolean } {
    const { error, description, reason, clientId, userId } = event;
    const own = JSON.stringify([network, event.event, error, description, reason, clientId, userId]);
    if (this.#known.has(own)) return { key: own, isFull: false };
    if (this.#known.size >= repetitionLimits.inWhole)
      return { key: JSON.stringify([event.event, error]), isFull: true };
    if ((this.#ofNetwork.get(network) ?? 0) < repetitionLimits.ofNetwork) return { key: own, isFull: false };
    return { key: JSON.stringify([network, event.event, error]), isFull: true };
  }

  #forgetOld(nowMs: number): void {
    for (const [key, { firstAtMs, network }] of this.#known) {
      // A clock that was set back begins anew.
      if (nowMs - firstAtMs < repetitionLimits.windowMs && nowMs >= firstAtMs) return;
      this.#known.delete(key);
      const left = (this.#ofNetwork.get(network) ?? 0) - 1;
      if (left > 0) this.#ofNetwork.set(network, left);
      else this.#ofNetwork.delete(network);
    }
  }
}
