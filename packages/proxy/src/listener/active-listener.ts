// One listener that accepts: chooses the filter chain for each connection, knows its open connections, and drains them when
// what they began with is no longer configured.
import type { Socket } from "node:net";
import type { DataPath } from "../connection/data-path.ts";
import { HttpConnection } from "../connection/http-connection.ts";
import { CallbackTimer } from "../connection/timer-wheel.ts";
import type { ConnectionProperties, FilterChain, Listener } from "../runtime/proxy-runtime.ts";

export class ActiveListener {
  #listener: Listener;
  readonly #dataPath: DataPath;
  /** Open connections and the filter chain that each began with. */
  readonly #connections = new Map<HttpConnection, FilterChain>();
  #draining = false;
  /** Who waits for the end of the last connection: a process that drains, a listener that is removed meanwhile. */
  #onEmpty: (() => void)[] = [];

  constructor(listener: Listener, dataPath: DataPath) {
    this.#listener = listener;
    this.#dataPath = dataPath;
  }

  get listener(): Listener {
    return this.#listener;
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Puts new filter chains in place; connections of chains that are gone end with their next answer, or after the time. */
  replace(listener: Listener, drainTimeMs: number): void {
    this.#listener = listener;
    const kept = new Set([...listener.filterChains, listener.defaultFilterChain]);
    const leaving: HttpConnection[] = [];
    for (const [connection, chain] of this.#connections) if (!kept.has(chain)) leaving.push(connection);
    if (leaving.length === 0) return;
    for (const connection of leaving) connection.drain();
    this.#after(drainTimeMs, () => {
      for (const connection of leaving) if (this.#connections.has(connection)) connection.destroy();
    });
  }

  /** Every connection ends with its next answer, or after the time. Resolves when none is left. */
  drain(drainTimeMs: number): Promise<void> {
    this.#draining = true;
    for (const connection of this.#connections.keys()) connection.drain();
    if (this.#connections.size === 0) return Promise.resolve();
    const timer = this.#after(drainTimeMs, () => this.destroyConnections());
    return new Promise((resolve) => {
      this.#onEmpty.push(() => {
        this.#dataPath.timers.disarm(timer);
        resolve();
      });
    });
  }

  destroyConnections(): void {
    for (const connection of this.#connections.keys()) connection.destroy();
  }

  #after(delayMs: number, action: () => void): CallbackTimer {
    const timer = new CallbackTimer(action);
    this.#dataPath.timers.arm(timer, delayMs, this.#dataPath.turn.nowMs);
    return timer;
  }

  accept(socket: Socket): void {
    const { stats } = this.#listener;
    stats.connectionsTotal.increment();
    const chain = this.#chooseChain(connectionProperties(socket));
    if (chain === undefined) {
      stats.noFilterChainMatch.increment();
      this.#dataPath.connectionLog.debug("no filter chain matches", { listener: this.#listener.name });
      socket.destroy();
      return;
    }
    stats.connectionsActive.add(1);
    const connection = new HttpConnection({
      socket,
      config: chain.network,
      bufferLimitBytes: this.#listener.perConnectionBufferLimitBytes,
      serverName: "",
      scheme: "http",
      dataPath: this.#dataPath,
      onClosed: (closed) => {
        // Those that counted its beginning; the listener may have been replaced meanwhile.
        stats.connectionsActive.add(-1);
        this.#onClosed(closed);
      },
    });
    if (this.#draining) connection.drain();
    this.#connections.set(connection, chain);
  }

  #chooseChain(properties: ConnectionProperties): FilterChain | undefined {
    for (const chain of this.#listener.filterChains) if (chain.matches(properties)) return chain;
    return this.#listener.defaultFilterChain;
  }

  #onClosed(connection: HttpConnection): void {
    this.#connections.delete(connection);
    if (this.#connections.size > 0) return;
    for (const tell of this.#onEmpty.splice(0)) tell();
  }
}

function connectionProperties(socket: Socket): ConnectionProperties {
  return {
    localIp: socket.localAddress ?? "",
    localPort: socket.localPort ?? 0,
    remoteIp: socket.remoteAddress ?? "",
    remotePort: socket.remotePort ?? 0,
    transportProtocol: "raw_buffer",
    serverName: "",
    applicationProtocols: [],
  };
}
