// One listener that accepts: chooses the filter chain for each connection, knows its open connections, and drains them
// when what they began with is no longer configured.
import type { Socket } from "node:net";
import { descriptorOf } from "@tulle/listening";
import type { ListenerFilter } from "../filters/listener/listener-filter.ts";
import { ConnectionInfo, type FirstWord } from "./connection-info.ts";
import type { DataPath } from "../worker/data-path.ts";
import type { DownstreamConnection, DownstreamConnectionOptions } from "./downstream-connection.ts";
import type { NetworkFilter, UnopenedEnd } from "./network-filter.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import { responseFlags } from "../http/response-flags.ts";
import type { DownstreamTls } from "../tls/downstream-tls.ts";
import type { FilterChain, Listener } from "./listener.ts";
import { ConnectionLog } from "./connection-log.ts";
import { HeldConnection } from "./held-connection.ts";
import { type IncomingSocket, untouchedSocket } from "./incoming-socket.ts";
import { Inspection } from "./inspection.ts";
import { ServerFirst } from "./server-first.ts";
import { readTlsInto } from "./read-tls-into.ts";
import { TlsHandshake } from "./tls-handshake.ts";

/** A connection whose chain has been chosen. */
interface RoutedConnection {
  readonly info: ConnectionInfo;
  readonly chain: FilterChain;
  readonly bufferLimitBytes: number;
  ended(): void;
}

/** The listener of that address, if there is one. */
export type ListenerOfAddress = (ip: string, port: number) => ActiveListener | undefined;

/** Nobody asks for it. */
const noDescriptor = -1;

export class ActiveListener {
  #listener: Listener;
  readonly #dataPath: DataPath;
  readonly #siblings: ListenerOfAddress;
  /** Open connections and the filter chain that each began with; undefined = it has not been chosen yet. */
  readonly #connections = new Map<DownstreamConnection, FilterChain | undefined>();
  readonly #serverFirst = new ServerFirst();
  #draining = false;
  /** Who waits for the end of the last connection: a process that drains, a listener that is removed meanwhile. */
  #onEmpty: (() => void)[] = [];

  constructor(listener: Listener, dataPath: DataPath, siblings: ListenerOfAddress) {
    this.#listener = listener;
    this.#dataPath = dataPath;
    this.#siblings = siblings;
  }

  get listener(): Listener {
    return this.#listener;
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /**
   * Puts new filter chains in place; connections of chains that are gone end with their next answer, or after the time.
   */
  replace(listener: Listener, drainTimeMs: number): void {
    this.#listener = listener;
    const kept = new Set(listener.filterChains);
    // Most end soon, and the time is long: the timer must not keep those, and what they were made with.
    const leaving: WeakRef<DownstreamConnection>[] = [];
    for (const [connection, chain] of this.#connections) {
      if (chain === undefined || kept.has(chain)) continue;
      connection.drain();
      leaving.push(new WeakRef(connection));
    }
    if (leaving.length === 0) return;
    this.#after(drainTimeMs, () => {
      for (const reference of leaving) {
        const connection = reference.deref();
        if (connection !== undefined && this.#connections.has(connection)) connection.destroy();
      }
    });
  }

  /** Every connection, those that are still to come too, ends with its next answer. */
  beginDrain(): void {
    this.#draining = true;
    for (const connection of this.#connections.keys()) connection.drain();
  }

  /** As `beginDrain`; what has not ended after the time is cut. Resolves when no connection is left. */
  drain(drainTimeMs: number): Promise<void> {
    this.beginDrain();
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
    const { listenerFilters, perConnectionBufferLimitBytes } = this.#listener;
    const info = new ConnectionInfo(socket);
    const descriptor = listenerFilters.length === 0 ? noDescriptor : descriptorOf(socket);
    this.#inspect(untouchedSocket(socket, this.#dataPath, perConnectionBufferLimitBytes), descriptor, info);
  }

  #inspect(incoming: IncomingSocket, descriptor: number, info: ConnectionInfo): void {
    const listener = this.#listener;
    const dataPath = this.#dataPath;
    const log = new ConnectionLog(listener.accessLogs, info, dataPath);
    const finish = (socket: IncomingSocket): void => {
      const target = listener.usesOriginalDst ? this.#listenerOfDestination(info) : undefined;
      if (target === undefined) this.#route(socket, info, log);
      else target.#inspect(socket, descriptor, info);
    };
    const firstFilter = firstThatReads(listener.listenerFilters, info, descriptor);
    if (firstFilter < 0) return finish(incoming);
    const knownWaitMs = this.#serverFirst.waitMs(listener, info);
    const firstWord = (): FirstWord => this.#serverFirst.firstWord(listener, info);
    if (knownWaitMs === 0) {
      listener.stats.serverFirst.increment();
      info.firstWord = firstWord();
      return finish(incoming);
    }
    const inspection = new Inspection({
      incoming,
      descriptor,
      firstFilter,
      info,
      listener,
      dataPath,
      timeoutMs: knownWaitMs ?? listener.listenerFiltersTimeoutMs,
      isServerFirst: knownWaitMs !== undefined,
      onInspected: (inspected, wasSilent) => {
        if (wasSilent) info.firstWord = firstWord();
        else if (knownWaitMs !== undefined) firstWord().ofClient();
        this.#connections.delete(inspection);
        finish(inspected);
        this.#tellWhenEmpty();
      },
      onEnded: () => {
        log.end();
        this.#onClosed(inspection);
      },
    });
    this.#connections.set(inspection, undefined);
  }

  /**
   * Another one that has the address at which a redirected connection was aimed; whoever has it finds itself, so that
   * nothing is handed on twice.
   */
  #listenerOfDestination(info: ConnectionInfo): ActiveListener | undefined {
    if (!info.isDestinationRestored) return undefined;
    const target = this.#siblings(info.localIp, info.localPort);
    return target === this ? undefined : target;
  }

  #route(socket: IncomingSocket, info: ConnectionInfo, log: ConnectionLog): void {
    const listener = this.#listener;
    const chain = listener.findChain(info);
    info.listener = {
      connectionId: info.id,
      name: listener.name,
      metadata: listener.metadata,
      chainName: chain?.name ?? "",
      directLocalAddress: info.directLocalAddress,
      originalDestination: info.originalDestination(),
      upstreamSource: info.upstreamSource,
      directRemoteAddress: info.directRemoteAddress,
      chainMetadata: chain?.metadata ?? {},
      ja3Fingerprint: info.ja3Fingerprint,
      ja4Fingerprint: info.ja4Fingerprint,
      roundTripMs: () => info.roundTrip.lastMs(),
    };
    if (chain === undefined) {
      listener.stats.noFilterChainMatch.increment();
      this.#dataPath.connectionLog.debug("no filter chain matches", { listener: listener.name });
      socket.destroy();
      info.responseCodeDetails = "filter_chain_not_found";
      info.responseFlags |= responseFlags.NR.bit;
      log.end();
      return;
    }
    // Those that count its beginning count its end; the listener may be replaced meanwhile.
    const { stats } = listener;
    stats.connectionsTotal.increment();
    stats.connectionsActive.add(1);
    const acceptedAtMs = this.#dataPath.turn.nowMs;
    const connection: RoutedConnection = {
      info,
      chain,
      bufferLimitBytes: listener.perConnectionBufferLimitBytes,
      ended: () => {
        stats.connectionsActive.add(-1);
        stats.connectionsDestroyed.increment();
        stats.connectionLengthMs.record(this.#dataPath.turn.nowMs - acceptedAtMs);
        log.end();
      },
    };
    if (chain.transport.type === "raw")
      this.#open(
        connection,
        (onRead) => socket.openRaw(onRead),
        () => socket.destroy(),
      );
    else this.#shakeHands(connection, chain.transport, socket.forTls());
  }

  #shakeHands(connection: RoutedConnection, transport: DownstreamTls, socket: Socket): void {
    const { info } = connection;
    const handshake = new TlsHandshake({
      socket,
      info,
      transport,
      dataPath: this.#dataPath,
      onEstablished: (tlsSocket) => {
        this.#connections.delete(handshake);
        const openSocket = (onRead: (chunk: Buffer) => void): Socket => {
          readTlsInto(tlsSocket, this.#dataPath, onRead);
          return tlsSocket;
        };
        this.#dataPath.turn.run(() => this.#open(connection, openSocket, () => tlsSocket.destroy()));
        this.#tellWhenEmpty();
      },
      onFailed: () => {
        this.#dataPath.connectionLog.info("TLS handshake failed", {
          connection: info.id,
          listener: this.#listener.name,
          remote: info.remoteAddress,
          reason: info.transportFailureReason ?? info.terminationDetails ?? "the client ended the connection",
        });
        this.#endUnopened(connection, "handshake_failed");
        this.#onClosed(handshake);
      },
    });
    this.#connections.set(handshake, connection.chain);
  }

  /**
   * Asks the filters of the chain, from the one of that position on. `destroy` is for a socket that nobody has opened.
   */
  #open(routed: RoutedConnection, openSocket: OpenSocket, destroy: () => void, first = 0): void {
    const { info, chain } = routed;
    const { networkFilters } = chain;
    for (let index = first; index < networkFilters.length; index += 1) {
      const filter = networkFilters[index]!;
      const verdict = filter.onNewConnection(info, this.#dataPath, (later) => {
        if (!this.#connections.delete(held)) return;
        if (later === "close") this.#refuse(routed, filter, () => held.refuse());
        else
          this.#open(
            routed,
            (onRead) => held.take(onRead),
            () => held.refuse(),
            index + 1,
          );
        this.#tellWhenEmpty();
      });
      if (verdict === "close") return this.#refuse(routed, filter, destroy);
      if (verdict === "continue") continue;
      const held = new HeldConnection(openSocket, () => {
        verdict.cancel();
        routed.ended();
        this.#onClosed(held);
      });
      this.#connections.set(held, chain);
      return;
    }
    this.#hand(routed, openSocket);
  }

  #refuse(routed: RoutedConnection, filter: NetworkFilter, destroy: () => void): void {
    const { info } = routed;
    this.#dataPath.connectionLog.debug("closed by a network filter", {
      connection: info.id,
      filter: filter.name,
      reason: info.terminationDetails ?? "",
    });
    destroy();
    this.#endUnopened(routed, "closed_by_filter");
  }

  #endUnopened(routed: RoutedConnection, end: UnopenedEnd): void {
    const { info, chain } = routed;
    const { networkFilters, network } = chain;
    network.onUnopened(end, { info, dataPath: this.#dataPath, networkFilters });
    routed.ended();
  }

  /** To what terminates the connection. */
  #hand(routed: RoutedConnection, openSocket: OpenSocket): void {
    const { info, chain, bufferLimitBytes } = routed;
    const { networkFilters, network } = chain;
    const dataPath = this.#dataPath;
    const connection = network.open({
      info,
      networkFilters,
      openSocket,
      bufferLimitBytes,
      dataPath,
      onClosed: (closed) => {
        routed.ended();
        this.#onClosed(closed);
      },
    });
    if (this.#draining || !this.#listener.filterChains.includes(chain)) connection.drain();
    this.#connections.set(connection, chain);
  }

  #onClosed(connection: DownstreamConnection): void {
    this.#connections.delete(connection);
    this.#tellWhenEmpty();
  }

  #tellWhenEmpty(): void {
    if (this.#connections.size > 0) return;
    for (const tell of this.#onEmpty.splice(0)) tell();
  }
}

/** Asks the filters before it that need no bytes; -1 = none has to read. */
function firstThatReads(filters: readonly ListenerFilter[], info: ConnectionInfo, descriptor: number): number {
  for (const [index, filter] of filters.entries()) {
    if (filter.isSkipped(info)) continue;
    if (filter.onAccept === undefined) return index;
    filter.onAccept(info, descriptor);
  }
  return -1;
}

type OpenSocket = DownstreamConnectionOptions["openSocket"];
