// Pings on an HTTP/2 connection, so that a peer whose machine is gone is noticed (config.core.v3.KeepaliveSettings).
import type { DataPath } from "../../worker/data-path.ts";
import { CallbackTimer } from "../../worker/timer-wheel.ts";
import type { Http2KeepAlive } from "./http2-options.ts";

/** The connection that it keeps watch over. */
export interface PingedConnection {
  readonly bytesReceived: number;
  ping(onAnswer: () => void): void;
  /** Called at most once. */
  onSilence(): void;
}

export class KeepAlive {
  readonly #connection: PingedConnection;
  readonly #settings: Http2KeepAlive;
  readonly #dataPath: DataPath;
  readonly #timer = new CallbackTimer(() => this.#onTimer());
  #isWaiting = false;
  #isStopped = false;
  #bytesBefore = 0;

  /** `settings` are those of the connection's options. */
  constructor(connection: PingedConnection, settings: Http2KeepAlive, dataPath: DataPath) {
    this.#connection = connection;
    this.#settings = settings;
    this.#dataPath = dataPath;
    this.#pingLater();
  }

  stop(): void {
    this.#isStopped = true;
    this.#dataPath.timers.disarm(this.#timer);
  }

  #pingLater(): void {
    const { intervalMs, jitterPercent } = this.#settings;
    this.#arm(intervalMs * (1 + (this.#dataPath.random() * jitterPercent) / 100));
  }

  #onTimer(): void {
    if (!this.#isWaiting) this.#dataPath.turn.run(() => this.#ping());
    // An answer may wait behind a large message: any byte of the peer begins its time anew.
    else if (this.#connection.bytesReceived !== this.#bytesBefore) this.#await();
    else this.#connection.onSilence();
  }

  #ping(): void {
    this.#isWaiting = true;
    this.#connection.ping(() => {
      this.#isWaiting = false;
      if (!this.#isStopped) this.#pingLater();
    });
    this.#await();
  }

  #await(): void {
    this.#bytesBefore = this.#connection.bytesReceived;
    this.#arm(this.#settings.timeoutMs);
  }

  #arm(ms: number): void {
    this.#dataPath.timers.arm(this.#timer, ms, this.#dataPath.turn.nowMs);
  }
}
