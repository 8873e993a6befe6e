// One listener that accepts: chooses the filter chain for each connection, knows its open connections, and drains them when
// what they began with is no longer configured.
import type { Socket } from "node:net";
import { ConnectionInfo } from "../connection/connection-info.ts";
import type { DataPath } from "../connection/data-path.ts";
import type { DownstreamConnection, DownstreamConnectionOptions } from "../connection/downstream-connection.ts";
import { HttpConnection } from "../connection/http-connection.ts";
import { CallbackTimer } from "../connection/timer-wheel.ts";
import type { FilterChain, Listener, TerminalNetworkFilter } from "../runtime/proxy-runtime.ts";
import { adoptSocket } from "./adopt-socket.ts";

export class ActiveListener {
  #listener: Listener;
  readonly #dataPath: DataPath;
  /** Open connections and the filter chain that each began with. */
  readonly #connections = new Map<DownstreamConnection, FilterChain>();
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
    const leaving: DownstreamConnection[] = [];
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
    const info = new ConnectionInfo(socket);
    const chain = this.#chooseChain(info);
    if (chain === undefined) {
      stats.noFilterChainMatch.increment();
      this.#dataPath.connectionLog.debug("no filter chain matches", { listener: this.#listener.name });
      socket.destroy();
      return;
    }
    this.#open(socket, info, chain);
  }

  #chooseChain(connection: ConnectionInfo): FilterChain | undefined {
    for (const chain of this.#listener.filterChains) if (chain.matches(connection)) return chain;
    return this.#listener.defaultFilterChain;
  }

  #open(socket: Socket, info: ConnectionInfo, chain: FilterChain): void {
    const { networkFilters, network } = chain;
    const dataPath = this.#dataPath;
    const refusing = networkFilters.find((filter) => filter.onNewConnection(info) === "close");
    if (refusing !== undefined) {
      dataPath.connectionLog.debug("closed by a network filter", {
        connection: info.id,
        filter: refusing.name,
        reason: info.terminationDetails ?? "",
      });
      socket.destroy();
      if (network.type === "tcp_proxy") network.onRefused({ info, dataPath, networkFilters });
      return;
    }
    const { perConnectionBufferLimitBytes, stats } = this.#listener;
    stats.connectionsActive.add(1);
    const connection = openConnection(network, {
      info,
      networkFilters,
      openSocket: (onRead) => adoptSocket(socket, dataPath, perConnectionBufferLimitBytes, onRead),
      bufferLimitBytes: perConnectionBufferLimitBytes,
      dataPath,
      onClosed: (closed) => {
        // Those that counted its beginning; the listener may have been replaced meanwhile.
        stats.connectionsActive.add(-1);
        this.#onClosed(closed);
      },
    });
    if (this.#draining) connection.drain();
    this.#connections.set(connection, chain);
  }

  #onClosed(connection: DownstreamConnection): void {
    this.#connections.delete(connection);
    if (this.#connections.size > 0) return;
    for (const tell of this.#onEmpty.splice(0)) tell();
  }
}

function openConnection(network: TerminalNetworkFilter, options: DownstreamConnectionOptions): DownstreamConnection {
  return network.type === "tcp_proxy" ? network.open(options) : new HttpConnection(network, options);
}
