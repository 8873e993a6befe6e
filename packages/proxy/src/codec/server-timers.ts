// When an HTTP/1.1 client has been silent for too long: between two requests, and within a head.
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";

/**
 * A client that ends its side within this time of its request has only finished speaking (RFC 9112 §9.6) and is
 * answered; later than that it has given up, as Envoy takes it at any time. TCP cannot tell the two apart.
 */
const halfCloseWindowMs = 100;

export interface SilentClient {
  /** A client that does not take its answers, or never ends a head, is as idle as one that is silent. */
  readonly isBetweenRequests: boolean;
  onIdleTimeout(): void;
  onHeadTimeout(): void;
}

export class ServerTimers {
  readonly #client: SilentClient;
  readonly #dataPath: DataPath;
  readonly #idleTimeoutMs: number;
  readonly #headersTimeoutMs: number;
  readonly #idleTimer = new CallbackTimer(() => this.#onIdleTimer());
  readonly #headTimer = new CallbackTimer(() => this.#client.onHeadTimeout());
  /** Since the last request or its answer was complete. */
  quietSinceMs: number;

  /** 0 = no limit, for both. */
  constructor(client: SilentClient, idleTimeoutMs: number, headersTimeoutMs: number, dataPath: DataPath) {
    this.#client = client;
    this.#dataPath = dataPath;
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#headersTimeoutMs = headersTimeoutMs;
    this.quietSinceMs = dataPath.turn.nowMs;
    if (idleTimeoutMs > 0) dataPath.timers.arm(this.#idleTimer, idleTimeoutMs, this.quietSinceMs);
  }

  get hasJustSpoken(): boolean {
    return this.#dataPath.turn.nowMs - this.quietSinceMs <= halfCloseWindowMs;
  }

  /** A head has come in part. */
  beginHead(): void {
    if (this.#headTimer.armed || this.#headersTimeoutMs === 0) return;
    this.#dataPath.timers.arm(this.#headTimer, this.#headersTimeoutMs, this.#dataPath.turn.nowMs);
  }

  endHead(): void {
    if (this.#headTimer.armed) this.#dataPath.timers.disarm(this.#headTimer);
  }

  stop(): void {
    this.#dataPath.timers.disarm(this.#idleTimer);
    this.#dataPath.timers.disarm(this.#headTimer);
  }

  // Armed once; a connection that was busy meanwhile waits for the rest of its time (cheaper than re-arming on each
  // request).
  #onIdleTimer(): void {
    const nowMs = this.#dataPath.turn.nowMs;
    const idleMs = this.#client.isBetweenRequests ? nowMs - this.quietSinceMs : 0;
    const leftMs = this.#idleTimeoutMs - idleMs;
    if (leftMs > 0) this.#dataPath.timers.arm(this.#idleTimer, leftMs, nowMs);
    else this.#client.onIdleTimeout();
  }
}
