// A connection whose chain is chosen while a network filter of it still waits for somebody's word. Nothing is read
// meanwhile, and what has been read already is kept for whoever takes the connection.
import type { Socket } from "node:net";
import type { DownstreamConnection, DownstreamConnectionOptions } from "./downstream-connection.ts";

type OpenSocket = DownstreamConnectionOptions["openSocket"];

export class HeldConnection implements DownstreamConnection {
  readonly #socket: Socket;
  /** What came with the bytes that were looked at, or in one record of TLS: a read at most. */
  readonly #early: Buffer[] = [];
  #hasEnded = false;
  #onRead: (chunk: Buffer) => void = (chunk) => void this.#early.push(Buffer.from(chunk));
  readonly #onEnd = (): void => void (this.#hasEnded = true);
  readonly #onClose: () => void;

  /** `onGone` is called once if the socket closes before it is taken or refused. */
  constructor(openSocket: OpenSocket, onGone: (held: HeldConnection) => void) {
    this.#onClose = () => onGone(this);
    const socket = openSocket((chunk) => this.#onRead(chunk));
    this.#socket = socket;
    socket.pause();
    socket.on("end", this.#onEnd);
    socket.on("error", () => undefined);
    socket.on("close", this.#onClose);
  }

  /** It has said nothing yet that could be finished: what follows it is told. */
  drain(): void {}

  destroy(): void {
    this.#socket.destroy();
  }

  refuse(): void {
    this.#letGo();
    this.#socket.destroy();
  }

  /** As `DownstreamConnectionOptions.openSocket`. */
  take(onRead: (chunk: Buffer) => void): Socket {
    this.#letGo();
    const socket = this.#socket;
    this.#onRead = onRead;
    process.nextTick(() => {
      for (const chunk of this.#early.splice(0)) if (!socket.destroyed) onRead(chunk);
      if (this.#hasEnded && !socket.destroyed) socket.emit("end");
    });
    socket.resume();
    return socket;
  }

  #letGo(): void {
    this.#socket.removeListener("end", this.#onEnd);
    this.#socket.removeListener("close", this.#onClose);
  }
}
