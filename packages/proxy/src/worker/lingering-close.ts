// The end of a server connection that we close: what waits for the client leaves first, then the client has a moment to
// read it and to end its own side (RFC 9112 §9.6). Made when a connection closes, as most of their lives they do not.
import type { Socket } from "node:net";
import type { DataPath } from "./data-path.ts";
import { CallbackTimer } from "./timer-wheel.ts";

/**
 * How long such a connection may go without taking anything of what still waits for it, or as long as it lingers where
 * that is longer. What waits falls in steps of whole writes, so that it is no short time.
 */
const leastStallMs = 10_000;

/** The connection's output. */
interface EndingOutput {
  /** Bytes that the kernel has not taken yet. */
  readonly waitingBytes: number;
  /** Ends our side of the connection behind everything that waits, then calls back. */
  end(onEnded: () => void): void;
}

interface EndingSettings {
  readonly delayedCloseMs: number;
}

interface EndingOwner {
  /** The peer has not ended in time. */
  onCloseTimeout?(): void;
}

export class LingeringClose {
  readonly #socket: Socket;
  readonly #output: EndingOutput;
  readonly #dataPath: DataPath;
  readonly #stallMs: number;
  readonly #owner: EndingOwner;
  readonly #timer = new CallbackTimer(() => this.#onTimer());
  /** What waited for the client when the timer was armed last. */
  #unsentBytes: number;

  /**
   * Ends our side behind everything that has been written, and then the socket. For so long it waits for the peer's
   * end, so that the peer can read our last answer (Envoy: delayed_close_timeout); 0 = it goes once all is written.
   */
  constructor(socket: Socket, output: EndingOutput, dataPath: DataPath, settings: EndingSettings, owner: EndingOwner) {
    const { delayedCloseMs } = settings;
    this.#socket = socket;
    this.#output = output;
    this.#dataPath = dataPath;
    this.#stallMs = Math.max(leastStallMs, delayedCloseMs);
    this.#owner = owner;
    this.#arm(this.#stallMs);
    this.#unsentBytes = 0;
    output.end(() => {
      this.#unsentBytes = 0;
      if (delayedCloseMs > 0) this.#arm(delayedCloseMs);
      else socket.destroySoon();
    });
    this.#unsentBytes = output.waitingBytes;
  }

  /** The socket has gone. */
  cancel(): void {
    this.#dataPath.timers.disarm(this.#timer);
  }

  #arm(timeoutMs: number): void {
    this.#dataPath.timers.arm(this.#timer, timeoutMs, this.#dataPath.turn.nowMs);
  }

  // A slow client may take as long as it likes as long as it takes something.
  #onTimer(): void {
    const { waitingBytes } = this.#output;
    if (waitingBytes === this.#unsentBytes) {
      this.#owner.onCloseTimeout?.();
      this.#socket.destroy();
      return;
    }
    this.#unsentBytes = waitingBytes;
    this.#arm(this.#stallMs);
  }
}
