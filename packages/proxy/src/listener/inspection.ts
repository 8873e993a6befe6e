// One connection before its filter chain is chosen: reads its first bytes for the listener filters, within a time, and
// hands them on with the socket (Envoy: ActiveTcpSocket). A connection that another listener hands over may bring
// bytes that have been looked at there.
import type { Socket } from "node:net";
import type { ConnectionInfo } from "./connection-info.ts";
import type { DataPath } from "../worker/data-path.ts";
import type { DownstreamConnection } from "./downstream-connection.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import type { Inspector } from "../filters/listener/listener-filter.ts";
import type { Listener } from "./listener.ts";
import type { IncomingSocket } from "./incoming-socket.ts";

export interface InspectionOptions {
  readonly incoming: IncomingSocket;
  /** Of the accepted socket, which keeps it for life. */
  readonly descriptor: number;
  /** The listener filter to begin with. */
  readonly firstFilter: number;
  readonly info: ConnectionInfo;
  readonly listener: Listener;
  readonly dataPath: DataPath;
  /** 0 = none. */
  readonly timeoutMs: number;
  /** The server is known to speak first: that the time is over is no surprise. */
  readonly isServerFirst: boolean;
  /** Called once, unless `onEnded` is: the socket is to be taken over within the call. */
  readonly onInspected: (socket: IncomingSocket, wasSilent: boolean) => void;
  /** The connection has ended while it was looked at. */
  readonly onEnded: () => void;
}

const noBytes: Buffer = Buffer.alloc(0);

export class Inspection implements DownstreamConnection {
  readonly #options: InspectionOptions;
  readonly #socket: Socket;
  readonly #timer: CallbackTimer;
  #next: number;
  /** Of the filter that is asked. */
  #inspector: Inspector | undefined = undefined;
  /** What has come, at the beginning of a buffer that grows by doubling. */
  #buffer: Buffer = noBytes;
  #seenBytes = 0;
  #hasSpoken = false;
  #isOver = false;
  #onRead: (chunk: Buffer) => void = (chunk) => this.#onBytes(chunk);
  readonly #onEnd = (): void => this.#onRemoteEnd();
  readonly #onClose = (): void => this.#onSocketClosed();

  constructor(options: InspectionOptions) {
    this.#options = options;
    const { listener, dataPath, timeoutMs } = options;
    this.#next = options.firstFilter;
    listener.stats.preConnectionsActive.add(1);
    this.#timer = new CallbackTimer(() => this.#onTimeout());
    this.#socket = options.incoming.openRaw((chunk) => this.#onRead(chunk));
    this.#socket.on("end", this.#onEnd);
    this.#socket.on("error", () => {
      if (!this.#isOver) listener.stats.listenerFilterErrors.increment();
    });
    this.#socket.on("close", this.#onClose);
    if (timeoutMs > 0) dataPath.timers.arm(this.#timer, timeoutMs, dataPath.turn.nowMs);
  }

  drain(): void {}

  destroy(): void {
    this.#socket.destroy();
  }

  #onBytes(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#hasSpoken = true;
    this.#keep(chunk);
    let seen = this.#buffer.subarray(0, this.#seenBytes);
    const { listener, info, descriptor } = this.#options;
    const filters = listener.listenerFilters;
    for (; this.#next < filters.length; this.#next += 1) {
      const filter = filters[this.#next]!;
      if (this.#inspector === undefined && filter.isSkipped(info)) continue;
      filter.onAccept?.(info, descriptor);
      this.#inspector ??= filter.inspector?.(info);
      // Those that read come with the client's next bytes.
      if (filter.inspector !== undefined && seen.length === 0) return;
      const status = this.#inspector?.(seen);
      if (status === "wait") return;
      if (status === "close") {
        this.#socket.destroy();
        return;
      }
      if (typeof status === "number") {
        this.#buffer = this.#buffer.subarray(status);
        this.#seenBytes -= status;
        seen = seen.subarray(status);
      }
      this.#inspector = undefined;
    }
    this.#finish();
  }

  #keep(chunk: Buffer): void {
    const needed = this.#seenBytes + chunk.length;
    if (needed > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(this.#seenBytes === 0 ? needed : needed * 2);
      this.#buffer.copy(grown, 0, 0, this.#seenBytes);
      this.#buffer = grown;
    }
    chunk.copy(this.#buffer, this.#seenBytes);
    this.#seenBytes = needed;
  }

  #finish(): void {
    this.#end();
    const socket = this.#socket;
    socket.removeListener("end", this.#onEnd);
    socket.removeListener("close", this.#onClose);
    const seen = this.#buffer.subarray(0, this.#seenBytes);
    this.#buffer = noBytes;
    const incoming: IncomingSocket = {
      forTls: () => {
        if (seen.length > 0) socket.unshift(seen);
        return socket;
      },
      openRaw: (onRead) => {
        this.#onRead = onRead;
        if (seen.length > 0) process.nextTick(() => void (socket.destroyed || onRead(seen)));
        return socket;
      },
      destroy: () => socket.destroy(),
    };
    this.#options.dataPath.turn.run(() => this.#options.onInspected(incoming, !this.#hasSpoken));
  }

  #onTimeout(): void {
    const { listener, isServerFirst } = this.#options;
    const { stats } = listener;
    if (isServerFirst) {
      stats.serverFirst.increment();
    } else {
      stats.preConnectionTimeouts.increment();
      if (!this.#hasSpoken) stats.silentTimeouts.increment();
    }
    if (listener.continuesAfterListenerFiltersTimeout) this.#finish();
    else this.#socket.destroy();
  }

  #onRemoteEnd(): void {
    this.#options.listener.stats.listenerFilterRemoteCloses.increment();
    this.#socket.destroy();
  }

  #onSocketClosed(): void {
    if (this.#isOver) return;
    this.#end();
    this.#options.onEnded();
  }

  #end(): void {
    this.#isOver = true;
    const { dataPath, listener } = this.#options;
    dataPath.timers.disarm(this.#timer);
    listener.stats.preConnectionsActive.add(-1);
  }
}
