// A socket without a network: a test feeds the codec itself and reads what was written, all within one call stack.
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";

export class FakeSocket extends EventEmitter {
  /** Everything written, as latin1. */
  written = "";
  lastData: string | Buffer = "";
  ended = false;
  destroyed = false;
  paused = false;
  /** The kernel takes nothing: writes wait for `pending` to be called. */
  blocked = false;
  pending: ((error?: Error) => void) | undefined = undefined;
  writable = true;
  writableLength = 0;
  localAddress = "127.0.0.1";
  localPort = 1;

  /** The same object as the codecs take it. */
  get socket(): Socket {
    return this as unknown as Socket;
  }

  _write(data: string | Buffer, _encoding: string, callback: (error?: Error) => void): void {
    this.written += typeof data === "string" ? data : data.toString("latin1");
    this.lastData = data;
    if (this.blocked) this.pending = callback;
    else callback();
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  end(): void {
    this.ended = true;
    this.writable = false;
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.writable = false;
    this.emit("close");
  }

  destroySoon(): void {
    this.destroy();
  }

  resetAndDestroy(): void {
    this.destroy();
  }
}
