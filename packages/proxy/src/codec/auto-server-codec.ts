// A server connection of which nobody has said what it speaks: its first bytes tell HTTP/2 from HTTP/1.1 (Envoy:
// codec_type AUTO). Until they are here it is nothing.
import type { Socket } from "node:net";
import type { Protocol } from "../http/message.ts";
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import type { ServerCodec, ServerCodecOwner } from "./server-codec.ts";

/** What HTTP/2 begins with and no request of HTTP/1.1 does: RFC 9113 §3.4 made the method so. */
const prefix = "PRI * HTTP/2";

export class AutoServerCodec implements ServerCodec {
  readonly #socket: Socket;
  readonly #owner: ServerCodecOwner;
  readonly #dataPath: DataPath;
  readonly #open: (protocol: Protocol) => ServerCodec;
  #codec: ServerCodec | undefined = undefined;
  #seenBytes = 0;
  #isDraining = false;
  readonly #idleTimer = new CallbackTimer(() => this.#onIdle());
  readonly #onEnd = (): void => void this.#socket.destroy();
  readonly #onClose = (): void => this.#closed();

  /** `idleTimeoutMs` 0 = none. */
  constructor(
    socket: Socket,
    owner: ServerCodecOwner,
    idleTimeoutMs: number,
    dataPath: DataPath,
    open: (protocol: Protocol) => ServerCodec,
  ) {
    this.#socket = socket;
    this.#owner = owner;
    this.#dataPath = dataPath;
    this.#open = open;
    if (idleTimeoutMs > 0) dataPath.timers.arm(this.#idleTimer, idleTimeoutMs, dataPath.turn.nowMs);
    socket.on("end", this.#onEnd);
    socket.on("error", ignored);
    socket.on("close", this.#onClose);
  }

  get protocol(): Protocol {
    return this.#codec?.protocol ?? "HTTP/1.1";
  }

  get bytesReceived(): number {
    return this.#codec?.bytesReceived ?? this.#seenBytes;
  }

  get bytesSent(): number {
    return this.#codec?.bytesSent ?? 0;
  }

  onData(data: Buffer): void {
    const codec = this.#codec ?? this.#choose(data);
    if (codec === undefined) return;
    codec.onData(data);
  }

  /** Undefined while the bytes are the beginning of both. */
  #choose(data: Buffer): ServerCodec | undefined {
    const seen = this.#seenBytes;
    let at = 0;
    while (at < data.length && seen + at < prefix.length && data[at] === prefix.charCodeAt(seen + at)) at += 1;
    const isPrefix = seen + at === prefix.length;
    if (!isPrefix && at === data.length) {
      this.#seenBytes += at;
      return undefined;
    }
    this.#forget();
    this.#socket.off("error", ignored);
    const codec = this.#open(isPrefix ? "HTTP/2" : "HTTP/1.1");
    this.#codec = codec;
    if (this.#isDraining) codec.drain();
    // What had come before is known: it is the beginning of the prefix.
    if (seen > 0) codec.onData(Buffer.from(prefix.slice(0, seen), "latin1"));
    return codec;
  }

  drain(): void {
    this.#isDraining = true;
    this.#codec?.drain();
  }

  closeWhenAnswered(): void {
    if (this.#codec === undefined) this.close();
    else this.#codec.closeWhenAnswered();
  }

  close(): void {
    if (this.#codec === undefined) this.#socket.destroy();
    else this.#codec.close();
  }

  destroy(): void {
    if (this.#codec === undefined) this.#socket.destroy();
    else this.#codec.destroy();
  }

  #onIdle(): void {
    this.#owner.onConnectionIdle();
    this.#socket.destroy();
  }

  #forget(): void {
    this.#dataPath.timers.disarm(this.#idleTimer);
    this.#socket.off("end", this.#onEnd);
    this.#socket.off("close", this.#onClose);
  }

  #closed(): void {
    this.#forget();
    this.#dataPath.turn.run(() => this.#owner.onConnectionClosed());
  }
}

function ignored(): void {
  // `close` follows.
}
