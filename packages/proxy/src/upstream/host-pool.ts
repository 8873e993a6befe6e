// The upstream connections of one host on one worker: idle ones are used again, last in first out, so that few stay
// warm; requests that find none wait in a bounded queue for one that is being made (Envoy: `ConnPoolImplBase`).
import { countPendingRequest } from "./cluster-load.ts";
import { streamsOfUnknownHost } from "../codec/http2/http2-client-connection.ts";
import type { RequestSender, ResponseReceiver, StreamResetReason } from "../codec/stream-codec.ts";
import type { Cluster, Host, UpstreamProtocol } from "../cluster/cluster.ts";
import type { UpstreamSource } from "../http/upstream-source.ts";
import type { DataPath } from "../worker/data-path.ts";
import { rawTransport, type UpstreamTransport } from "../tls/upstream-tls.ts";
import { PooledConnection, type UpstreamConnection } from "./pooled-connection.ts";

/** A request that waits for a connection. */
export interface PoolWaiter extends ResponseReceiver {
  /** `sender` is the request's stream on the connection. */
  onConnectionReady(sender: RequestSender, connection: UpstreamConnection): void;
  /** `detail` is the transport's own words, such as `delayed_connect_error:_Connection_refused`; empty for none. */
  onConnectionFailure(reason: StreamResetReason, detail: string): void;
}

/** Connections that any request of the pool may use: to one host, with one transport, server name and source. */
export class HostPool {
  readonly host: Host;
  readonly protocol: UpstreamProtocol;
  readonly transport: UpstreamTransport;
  /** Of requests (auto_sni); undefined = what the transport says. */
  readonly serverName: string | undefined;
  /** Where its connections come from; undefined = an address of this machine. */
  readonly source: UpstreamSource | undefined;
  readonly #dataPath: DataPath;
  /** With capacity; the one that was used last stands last. */
  readonly #ready: PooledConnection[] = [];
  readonly #all = new Set<PooledConnection>();
  readonly #waiters: { waiter: PoolWaiter; cluster: Cluster }[] = [];
  #connectingCount = 0;
  /** That the host is thought to take: what it said last. */
  streamsPerConnection: number;

  constructor(
    host: Host,
    dataPath: DataPath,
    protocol: UpstreamProtocol,
    transport: UpstreamTransport,
    serverName: string | undefined,
    source: UpstreamSource | undefined,
  ) {
    this.host = host;
    this.protocol = protocol;
    this.streamsPerConnection = protocol === "HTTP/2" ? streamsOfUnknownHost : 1;
    this.transport = transport;
    this.serverName = serverName;
    this.source = source;
    this.#dataPath = dataPath;
  }

  get isEmpty(): boolean {
    return this.#all.size === 0 && this.#waiters.length === 0;
  }

  /**
   * The waiter gets a stream at once where a connection has capacity, or hears later, or within this call when a
   * circuit breaker is open.
   */
  acquire(cluster: Cluster, waiter: PoolWaiter): void {
    const connection = this.#mostRecentlyUsed();
    if (connection !== undefined) {
      this.#open(connection, waiter);
      return;
    }
    const { stats, load, circuitBreakers } = cluster;
    if (load.pendingRequests >= circuitBreakers.maxPendingRequests) {
      stats.upstreamRequestPendingOverflow.increment();
      waiter.onConnectionFailure("overflow", "");
      return;
    }
    stats.upstreamRequestsPendingTotal.increment();
    countPendingRequest(cluster, 1);
    this.#waiters.push({ waiter, cluster });
    this.#connectFor(cluster);
  }

  /** Those that have lost their capacity since they were listed, as their sockets have been given up, are dropped. */
  #mostRecentlyUsed(): PooledConnection | undefined {
    const ready = this.#ready;
    for (;;) {
      const connection = ready.at(-1);
      if (connection === undefined || connection.capacity > 0) return connection;
      connection.isListed = false;
      ready.pop();
    }
  }

  /** A connection that has capacity; one on the list is mostly its last. */
  #open(connection: PooledConnection, waiter: PoolWaiter): void {
    const sender = connection.open(waiter);
    if (connection.isListed && connection.capacity === 0) this.#unlist(connection);
    waiter.onConnectionReady(sender, connection);
  }

  /** The waiter no longer wants a connection. */
  cancel(waiter: PoolWaiter): void {
    const index = this.#waiters.findIndex((entry) => entry.waiter === waiter);
    if (index < 0) return;
    const { cluster } = this.#waiters[index]!;
    countPendingRequest(cluster, -1);
    cluster.stats.upstreamRequestsCancelled.increment();
    this.#waiters.splice(index, 1);
  }

  /** Closes idle connections now and busy ones after their requests; requests that wait are still served. */
  drain(): void {
    for (const connection of this.#all) {
      connection.isListed = false;
      connection.drain();
    }
    this.#ready.length = 0;
  }

  /** Makes room for a connection of another pool; false when none waits for work. */
  closeIdleConnection(): boolean {
    const longestIdle = this.#ready.find(({ isIdle }) => isIdle);
    if (longestIdle === undefined) return false;
    this.#unlist(longestIdle);
    longestIdle.destroy();
    return true;
  }

  /** Ends everything at once. */
  destroy(): void {
    for (const connection of this.#all) connection.destroy();
  }

  #connectFor(cluster: Cluster): void {
    if (this.#connectingCount * this.streamsPerConnection >= this.#waiters.length) return;
    const { stats, load, circuitBreakers } = cluster;
    if (load.connections >= circuitBreakers.maxConnections) {
      stats.upstreamConnectionOverflow.increment();
      // A pool without any connection may always make one, or its requests would wait for ever (as Envoy).
      if (this.#all.size > 0) return;
    }
    this.#connectingCount += 1;
    const connection = new PooledConnection(this, cluster, this.#dataPath);
    this.#all.add(connection);
    this.#dataPath.poolLog.debug("connecting", { host: this.host.addressText });
  }

  onConnected(connection: PooledConnection): void {
    this.#connectingCount -= 1;
    this.onCapacity(connection);
  }

  /** The connection may take streams: those that wait go first. */
  onCapacity(connection: PooledConnection): void {
    while (this.#waiters.length > 0 && connection.capacity > 0) {
      const { waiter, cluster } = this.#waiters.shift()!;
      countPendingRequest(cluster, -1);
      this.#open(connection, waiter);
    }
    if (connection.isListed || connection.capacity === 0) return;
    if (!this.host.active) {
      connection.drain();
      return;
    }
    connection.isListed = true;
    this.#ready.push(connection);
  }

  /** A host that takes none at the moment is asked on one connection, which hears when it does. */
  onStreamLimit(connection: PooledConnection, streams: number): void {
    this.streamsPerConnection = Math.max(1, streams);
    this.onCapacity(connection);
  }

  onConnectionClosed(connection: PooledConnection): void {
    this.#all.delete(connection);
    this.#unlist(connection);
    const first = this.#waiters[0];
    if (first !== undefined) this.#connectFor(first.cluster);
  }

  #unlist(connection: PooledConnection): void {
    if (!connection.isListed) return;
    connection.isListed = false;
    if (this.#ready.at(-1) === connection) this.#ready.pop();
    else this.#ready.splice(this.#ready.lastIndexOf(connection), 1);
  }

  /** As in Envoy, everything that waits for this host fails with the connection that it waited for. */
  onConnectFailure(connection: PooledConnection, reason: StreamResetReason, detail: string): void {
    this.#all.delete(connection);
    this.#connectingCount -= 1;
    const failed = this.#waiters.splice(0);
    for (const { waiter, cluster } of failed) {
      countPendingRequest(cluster, -1);
      cluster.stats.upstreamRequestsPendingFailed.increment();
      waiter.onConnectionFailure(reason, detail);
    }
  }
}

/** The pools of one host: nearly always one, more where requests bring the server name. */
class PoolsOfHost {
  /** Last used, and the metadata that its transport was chosen by. */
  last: HostPool;
  metadata: Host["metadata"];
  readonly #pools = new Set<HostPool>();

  constructor(first: HostPool) {
    this.last = first;
    this.metadata = first.host.metadata;
    this.#pools.add(first);
  }

  get all(): Iterable<HostPool> {
    return this.#pools;
  }

  /** The pool of that kind; pools of a transport that the host no longer has drain, and empty ones are forgotten. */
  use(
    cluster: Cluster,
    protocol: UpstreamProtocol,
    serverName: string | undefined,
    source: UpstreamSource | undefined,
    dataPath: DataPath,
  ): HostPool {
    const { host } = this.last;
    const transport = cluster.transportOf?.(host) ?? rawTransport;
    let found: HostPool | undefined;
    for (const pool of this.#pools) {
      if (pool.transport !== transport) pool.drain();
      else if (isPoolFor(pool, protocol, serverName, source)) found = pool;
      if (pool !== found && pool.isEmpty) this.#pools.delete(pool);
    }
    if (found === undefined) {
      this.#makeRoom(cluster);
      found = new HostPool(host, dataPath, protocol, transport, serverName, source);
    }
    this.#pools.add(found);
    this.last = found;
    this.metadata = host.metadata;
    return found;
  }

  /**
   * A pool without any connection may always make one, and server names come from requests, sources from clients: each
   * would leave one behind.
   */
  #makeRoom({ load, circuitBreakers }: Cluster): void {
    if (load.connections < circuitBreakers.maxConnections) return;
    for (const pool of this.#pools) if (pool.closeIdleConnection()) return;
  }
}

function isPoolFor(
  pool: HostPool,
  protocol: UpstreamProtocol,
  serverName: string | undefined,
  source: UpstreamSource | undefined,
): boolean {
  return pool.protocol === protocol && pool.serverName === serverName && pool.source?.key === source?.key;
}

/** The pool of a host for such requests; made when the first of them comes. */
export function hostPool(
  host: Host,
  cluster: Cluster,
  dataPath: DataPath,
  protocol: UpstreamProtocol = "HTTP/1.1",
  serverName?: string,
  source?: UpstreamSource,
): HostPool {
  const pools = host.pool;
  if (!(pools instanceof PoolsOfHost)) {
    const transport = cluster.transportOf?.(host) ?? rawTransport;
    const pool = new HostPool(host, dataPath, protocol, transport, serverName, source);
    host.pool = new PoolsOfHost(pool);
    return pool;
  }
  const { last } = pools;
  if (pools.metadata === host.metadata && isPoolFor(last, protocol, serverName, source)) return last;
  return pools.use(cluster, protocol, serverName, source, dataPath);
}

/**
 * Call it when a host has left its cluster (`host.active` is false): idle connections close now, busy ones after their
 * request.
 */
export function drainHostPool(host: Host): void {
  if (!(host.pool instanceof PoolsOfHost)) return;
  for (const pool of host.pool.all) pool.drain();
}
