// One timer of the platform for every time-out of a worker: entries are links of a list in a slot of a coarse wheel, so
// that arming and disarming one, which every request does several times, costs two pointer writes and no allocation.
import type { Clock } from "./clock.ts";
import type { Turn } from "./turn.ts";

/** Time-outs fire up to this much late; none of Envoy's is finer than it matters. */
export const tickMs = 8;
const slotCount = 1024;
/**
 * The platform's timers count in 31 bits: one that is set further off fires at once. The wheel wakes and sleeps again.
 */
const maxSleepMs = 2 ** 31 - 1;

/** Something that can time out; what waits for one thing only extends it, so that waiting allocates nothing. */
export abstract class TimerEntry {
  /** Neighbours in the slot's ring; undefined while disarmed. */
  next: TimerEntry | undefined = undefined;
  previous: TimerEntry | undefined = undefined;
  dueTick = 0;

  abstract onTimeout(): void;

  get armed(): boolean {
    return this.next !== undefined;
  }

  /** True when an armed timer fires noticeably later than at that monotonic time. */
  isDueAfter(timeMs: number): boolean {
    return this.dueTick > Math.ceil(timeMs / tickMs);
  }
}

/** For who waits for several things. */
export class CallbackTimer extends TimerEntry {
  readonly #callback: () => void;

  constructor(callback: () => void) {
    super();
    this.#callback = callback;
  }

  onTimeout(): void {
    this.#callback();
  }
}

export class TimerWheel {
  readonly #clock: Clock;
  readonly #turn: Turn;
  readonly #slots: TimerEntry[] = [];
  #armedCount = 0;
  /** Last tick whose slot has been emptied. */
  #tick: number;
  #wakeTick = Infinity;
  #handle: unknown = undefined;
  readonly #onWake = (): void => this.#turn.run(() => this.#wake());

  constructor(clock: Clock, turn: Turn) {
    this.#clock = clock;
    this.#turn = turn;
    this.#tick = Math.floor(clock.monotonicMs() / tickMs);
    for (let index = 0; index < slotCount; index += 1) {
      const ring = new CallbackTimer(() => undefined);
      ring.next = ring;
      ring.previous = ring;
      this.#slots.push(ring);
    }
  }

  /** Entries that wait. */
  get armedCount(): number {
    return this.#armedCount;
  }

  /**
   * Arms the entry to fire `delayMs` after `nowMs` (monotonic), re-arming it if it waits already. Never fires early.
   */
  arm(entry: TimerEntry, delayMs: number, nowMs: number): void {
    if (entry.next !== undefined) this.disarm(entry);
    let dueTick = Math.ceil((nowMs + delayMs) / tickMs);
    if (dueTick <= this.#tick) dueTick = this.#tick + 1;
    entry.dueTick = dueTick;
    const ring = this.#slots[dueTick % slotCount]!;
    entry.next = ring;
    entry.previous = ring.previous;
    ring.previous!.next = entry;
    ring.previous = entry;
    this.#armedCount += 1;
    if (dueTick < this.#wakeTick) this.#sleepUntil(dueTick);
  }

  disarm(entry: TimerEntry): void {
    if (entry.next === undefined) return;
    entry.next.previous = entry.previous;
    entry.previous!.next = entry.next;
    entry.next = undefined;
    entry.previous = undefined;
    this.#armedCount -= 1;
  }

  /** Forgets every entry; for the end of a worker. */
  stop(): void {
    if (this.#handle !== undefined) this.#clock.clearTimer(this.#handle);
    this.#handle = undefined;
    this.#wakeTick = Infinity;
  }

  #sleepUntil(tick: number): void {
    if (this.#handle !== undefined) this.#clock.clearTimer(this.#handle);
    this.#wakeTick = tick;
    const sleepMs = Math.max(0, tick * tickMs - this.#clock.monotonicMs());
    this.#handle = this.#clock.setTimer(this.#onWake, Math.min(sleepMs, maxSleepMs));
  }

  #wake(): void {
    this.#handle = undefined;
    this.#wakeTick = Infinity;
    const nowTick = Math.floor(this.#clock.monotonicMs() / tickMs);
    // After a long sleep one round visits every slot, whatever the number of ticks missed.
    const first = Math.max(this.#tick + 1, nowTick - slotCount + 1);
    this.#tick = nowTick;
    for (let tick = first; tick <= nowTick; tick += 1) this.#fireSlot(this.#slots[tick % slotCount]!, nowTick);
    const next = this.#nextOccupiedTick();
    if (next !== undefined && next < this.#wakeTick) this.#sleepUntil(next);
  }

  #fireSlot(ring: TimerEntry, nowTick: number): void {
    let entry = ring.next!;
    while (entry !== ring) {
      if (entry.dueTick > nowTick) {
        entry = entry.next!;
        continue;
      }
      this.disarm(entry);
      entry.onTimeout();
      // The callback may have armed and disarmed others of this slot: start over, what is not due yet stays.
      entry = ring.next!;
    }
  }

  // A slot may hold only entries of later rounds; waking for it is harmless, at most once a round (8 s).
  #nextOccupiedTick(): number | undefined {
    if (this.#armedCount === 0) return undefined;
    for (let distance = 1; distance <= slotCount; distance += 1) {
      const ring = this.#slots[(this.#tick + distance) % slotCount]!;
      if (ring.next !== ring) return this.#tick + distance;
    }
    return undefined;
  }
}
