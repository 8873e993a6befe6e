// The upstream connections of one host on one worker: idle ones are used again, last in first out, so that few stay warm;
// requests that find none wait in a bounded queue for one that is being made (Envoy: `ConnPoolImplBase`).
import { countConnection, countPendingRequest } from "./cluster-load.ts";
import { type ClientConnectionOwner, Http1ClientConnection } from "../codec/http1/client-connection.ts";
import type { RequestSender, ResponseReceiver, StreamResetReason } from "../codec/stream-codec.ts";
import type { Cluster, Host } from "../cluster/cluster.ts";
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import type { TlsInfo } from "../tls/tls-info.ts";
import { rawTransport, type UpstreamTransport } from "../tls/upstream-tls.ts";
import { connectFailure, connectSocket, transportErrorText } from "./connect-socket.ts";
import { closeGrpcSession } from "./grpc-client.ts";

/** Envoy's defaults for responses: 80 KiB of head (its codec's MAX_RESPONSE_HEADERS_KB), 100 fields (HttpProtocolOptions). */
const maxResponseHeadBytes = 80 * 1024;
const maxResponseFieldCount = 100;
/** ALPN where the TLS context names no protocols of its own, as Envoy's HTTP pools do. */
const http1Protocols: readonly string[] = ["http/1.1"];

/** What a request is given to send itself on. */
export interface UpstreamConnection {
  readonly sender: RequestSender;
  readonly localAddress: string | undefined;
  /** Undefined = the connection is plain. */
  readonly tls: TlsInfo | undefined;
}

/** A request that waits for a connection. */
export interface PoolWaiter extends ResponseReceiver {
  onConnectionReady(connection: UpstreamConnection): void;
  /** `detail` is the transport's own words, such as `delayed_connect_error:_Connection_refused`; empty for none. */
  onConnectionFailure(reason: StreamResetReason, detail: string): void;
}

/**
 * - `connecting`: not up yet, the connect time-out runs.
 * - `idle`: waits in the pool, the idle time-out runs.
 * - `busy`: carries a request.
 * - `draining`: carries its last request.
 * - `closed`.
 */
type State = "connecting" | "idle" | "busy" | "draining" | "closed";

export class PooledConnection implements ClientConnectionOwner, UpstreamConnection {
  readonly #pool: HostPool;
  readonly #cluster: Cluster;
  readonly #dataPath: DataPath;
  readonly #timer = new CallbackTimer(() => this.#onTimer());
  readonly codec: Http1ClientConnection;
  state: State = "connecting";
  tls: TlsInfo | undefined = undefined;
  #requestCount = 0;
  #idleSinceMs = 0;
  /** When its life is over (max_connection_duration); infinity without a limit. */
  #endsAtMs = Infinity;
  #timedOut = false;
  #localAddress: string | undefined = undefined;
  #countedSent = 0;
  #countedReceived = 0;

  constructor(pool: HostPool, cluster: Cluster, dataPath: DataPath) {
    this.#pool = pool;
    this.#cluster = cluster;
    this.#dataPath = dataPath;
    cluster.stats.upstreamConnectionsTotal.increment();
    countConnection(cluster, 1);
    pool.host.stats.connectionsTotal += 1;
    pool.host.stats.connectionsActive += 1;
    this.codec = new Http1ClientConnection(
      connectSocket(
        pool.host,
        cluster,
        dataPath,
        (chunk) => this.codec.onData(chunk),
        {
          serverName: pool.serverName,
          verifiesServerName: pool.serverName !== undefined && cluster.autoServerName?.verifiesCertificate === true,
          defaultProtocols: http1Protocols,
        },
        pool.transport,
      ),
      this,
      {
        maxHeadBytes: maxResponseHeadBytes,
        maxFieldCount: maxResponseFieldCount,
        enableTrailers: cluster.enableTrailers,
        bufferLimitBytes: cluster.perConnectionBufferLimitBytes,
      },
      dataPath,
    );
    if (cluster.connectTimeoutMs > 0) dataPath.timers.arm(this.#timer, cluster.connectTimeoutMs, dataPath.turn.nowMs);
  }

  get sender(): RequestSender {
    return this.codec;
  }

  get localAddress(): string | undefined {
    return (this.#localAddress ??= this.codec.localAddress);
  }

  /** Gives an idle connection to a request. */
  start(receiver: ResponseReceiver): void {
    this.state = "busy";
    this.#requestCount += 1;
    const limit = this.#cluster.maxRequestsPerConnection;
    if (limit > 0 && this.#requestCount >= limit) this.state = "draining";
    this.codec.start(receiver);
  }

  onConnected(tls: TlsInfo | undefined): void {
    this.tls = tls;
    this.#dataPath.timers.disarm(this.#timer);
    this.#becomeIdle();
    const { maxConnectionDurationMs } = this.#cluster;
    if (maxConnectionDurationMs > 0) this.#endsAtMs = this.#idleSinceMs + maxConnectionDurationMs;
    this.#armTimer(this.#idleSinceMs);
    this.#pool.onConnected(this);
  }

  onExchangeEnd(reusable: boolean): void {
    const { stats } = this.#cluster;
    stats.upstreamBytesSent.add(this.codec.bytesSent - this.#countedSent);
    stats.upstreamBytesReceived.add(this.codec.bytesReceived - this.#countedReceived);
    this.#countedSent = this.codec.bytesSent;
    this.#countedReceived = this.codec.bytesReceived;
    if (!reusable) return;
    if (this.state === "draining" || !this.#pool.host.active) {
      this.codec.destroy();
      return;
    }
    this.#becomeIdle();
    this.#pool.onConnectionIdle(this);
  }

  onClosed(error: NodeJS.ErrnoException | undefined): void {
    const before = this.state;
    this.state = "closed";
    this.#dataPath.timers.disarm(this.#timer);
    countConnection(this.#cluster, -1);
    this.#pool.host.stats.connectionsActive -= 1;
    if (before === "connecting") this.#connectFailed(error);
    else this.#pool.onConnectionClosed(this, before === "idle");
  }

  #connectFailed(error: NodeJS.ErrnoException | undefined): void {
    const { stats } = this.#cluster;
    stats.upstreamConnectFailures.increment();
    this.#pool.host.stats.connectFailures += 1;
    if (this.#timedOut) stats.upstreamConnectTimeouts.increment();
    this.#dataPath.poolLog.debug("connect failed", {
      host: this.#pool.host.addressText,
      reason: this.#timedOut ? "connection timeout" : error?.code,
    });
    if (this.#timedOut) this.#pool.onConnectFailure(this, "connection_timeout", "");
    else this.#pool.onConnectFailure(this, connectFailure(error), transportErrorText(error));
  }

  #becomeIdle(): void {
    this.state = "idle";
    this.#idleSinceMs = this.#dataPath.turn.nowMs;
  }

  #onTimer(): void {
    if (this.state === "connecting") {
      this.#timedOut = true;
      this.codec.destroy();
      return;
    }
    const nowMs = this.#dataPath.turn.nowMs;
    const isOver = nowMs >= this.#endsAtMs;
    if (isOver) this.#cluster.stats.upstreamConnectionsMaxDuration.increment();
    if (isOver && this.state !== "idle") this.state = "draining";
    else if (isOver) this.codec.destroy();
    else this.#armTimer(nowMs);
  }

  /** For the end of its idle time or of its life, whichever comes first; too long idle, it ends now. */
  #armTimer(nowMs: number): void {
    const { idleTimeoutMs } = this.#cluster;
    const idleMs = this.state === "idle" ? nowMs - this.#idleSinceMs : 0;
    const idleLeftMs = idleTimeoutMs > 0 ? idleTimeoutMs - idleMs : Infinity;
    const leftMs = Math.min(idleLeftMs, this.#endsAtMs - nowMs);
    if (leftMs <= 0) this.codec.destroy();
    else if (leftMs < Infinity) this.#dataPath.timers.arm(this.#timer, leftMs, nowMs);
  }
}

/** Connections that any request of the pool may use: to one host, with one transport, for one server name. */
export class HostPool {
  readonly host: Host;
  readonly transport: UpstreamTransport;
  /** Of requests (auto_sni); undefined = what the transport says. */
  readonly serverName: string | undefined;
  readonly #dataPath: DataPath;
  readonly #idle: PooledConnection[] = [];
  readonly #all = new Set<PooledConnection>();
  readonly #waiters: { waiter: PoolWaiter; cluster: Cluster }[] = [];
  #connectingCount = 0;

  constructor(host: Host, dataPath: DataPath, transport: UpstreamTransport, serverName: string | undefined) {
    this.host = host;
    this.transport = transport;
    this.serverName = serverName;
    this.#dataPath = dataPath;
  }

  get isEmpty(): boolean {
    return this.#all.size === 0 && this.#waiters.length === 0;
  }

  /**
   * Gives an idle connection at once, already started for the waiter; otherwise undefined, and the waiter hears later,
   * or within this call when a circuit breaker is open.
   */
  acquire(cluster: Cluster, waiter: PoolWaiter): PooledConnection | undefined {
    let connection = this.#idle.pop();
    while (connection !== undefined && !connection.codec.usable) connection = this.#idle.pop();
    if (connection !== undefined) {
      connection.start(waiter);
      return connection;
    }
    const { stats, load, circuitBreakers } = cluster;
    if (load.pendingRequests >= circuitBreakers.maxPendingRequests) {
      stats.upstreamRequestPendingOverflow.increment();
      waiter.onConnectionFailure("overflow", "");
      return undefined;
    }
    stats.upstreamRequestsPendingTotal.increment();
    countPendingRequest(cluster, 1);
    this.#waiters.push({ waiter, cluster });
    this.#connectFor(cluster);
    return undefined;
  }

  /** The waiter no longer wants a connection. */
  cancel(waiter: PoolWaiter): void {
    const index = this.#waiters.findIndex((entry) => entry.waiter === waiter);
    if (index < 0) return;
    countPendingRequest(this.#waiters[index]!.cluster, -1);
    this.#waiters.splice(index, 1);
  }

  /** Closes idle connections now and busy ones after their request; requests that wait are still served. */
  drain(): void {
    for (const connection of this.#all) {
      if (connection.state === "idle") connection.codec.destroy();
      else if (connection.state === "busy") connection.state = "draining";
    }
    this.#idle.length = 0;
  }

  /** Makes room for a connection of another pool; false when none waits for work. */
  closeIdleConnection(): boolean {
    const longestIdle = this.#idle.shift();
    longestIdle?.codec.destroy();
    return longestIdle !== undefined;
  }

  /** Ends everything at once. */
  destroy(): void {
    for (const connection of this.#all) connection.codec.destroy();
  }

  #connectFor(cluster: Cluster): void {
    if (this.#connectingCount >= this.#waiters.length) return;
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
    this.onConnectionIdle(connection);
  }

  onConnectionIdle(connection: PooledConnection): void {
    const next = this.#waiters.length === 0 ? undefined : this.#waiters.shift();
    if (next === undefined) {
      if (this.host.active) this.#idle.push(connection);
      else connection.codec.destroy();
      return;
    }
    countPendingRequest(next.cluster, -1);
    connection.start(next.waiter);
    next.waiter.onConnectionReady(connection);
  }

  onConnectionClosed(connection: PooledConnection, wasIdle: boolean): void {
    this.#all.delete(connection);
    if (wasIdle) {
      const index = this.#idle.lastIndexOf(connection);
      if (index >= 0) this.#idle.splice(index, 1);
    }
    const first = this.#waiters[0];
    if (first !== undefined) this.#connectFor(first.cluster);
  }

  /** As in Envoy, everything that waits for this host fails with the connection that it waited for. */
  onConnectFailure(connection: PooledConnection, reason: StreamResetReason, detail: string): void {
    this.#all.delete(connection);
    this.#connectingCount -= 1;
    const failed = this.#waiters.splice(0);
    for (const { waiter, cluster } of failed) {
      countPendingRequest(cluster, -1);
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
  use(cluster: Cluster, serverName: string | undefined, dataPath: DataPath): HostPool {
    const { host } = this.last;
    const transport = cluster.transportOf?.(host) ?? rawTransport;
    let found: HostPool | undefined;
    for (const pool of this.#pools) {
      if (pool.transport !== transport) pool.drain();
      else if (pool.serverName === serverName) found = pool;
      if (pool !== found && pool.isEmpty) this.#pools.delete(pool);
    }
    if (found === undefined) {
      this.#makeRoom(cluster);
      found = new HostPool(host, dataPath, transport, serverName);
    }
    this.#pools.add(found);
    this.last = found;
    this.metadata = host.metadata;
    return found;
  }

  /** A pool without any connection may always make one, and server names come from requests: each would leave one behind. */
  #makeRoom({ load, circuitBreakers }: Cluster): void {
    if (load.connections < circuitBreakers.maxConnections) return;
    for (const pool of this.#pools) if (pool.closeIdleConnection()) return;
  }
}

/** The pool of a host for such requests; made when the first of them comes. */
export function hostPool(host: Host, cluster: Cluster, dataPath: DataPath, serverName?: string): HostPool {
  const pools = host.pool;
  if (!(pools instanceof PoolsOfHost)) {
    const pool = new HostPool(host, dataPath, cluster.transportOf?.(host) ?? rawTransport, serverName);
    host.pool = new PoolsOfHost(pool);
    return pool;
  }
  const { last } = pools;
  if (pools.metadata === host.metadata && last.serverName === serverName) return last;
  return pools.use(cluster, serverName, dataPath);
}

/** Call it when a host has left its cluster (`host.active` is false): idle connections close now, busy ones after their request. */
export function drainHostPool(host: Host): void {
  closeGrpcSession(host);
  if (!(host.pool instanceof PoolsOfHost)) return;
  for (const pool of host.pool.all) pool.drain();
}
