// One connection of a host's pool: how it comes up, how many streams it takes, and when it ends. The codec carries the
// streams.
import type { Socket } from "node:net";
import type { Cluster, UpstreamProtocol } from "../cluster/cluster.ts";
import { type ClientCodec, type ClientCodecOwner, openClientCodec } from "../codec/client-codec.ts";
import type { RequestSender, ResponseReceiver } from "../codec/stream-codec.ts";
import type { UpstreamTlsInfo } from "../tls/tls-info.ts";
import { nextConnectionId } from "../worker/connection-id.ts";
import type { DataPath } from "../worker/data-path.ts";
import { closedByPeer } from "../worker/closed-by-peer.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import { countConnection, countEnd } from "./cluster-load.ts";
import { connectFailure, connectSocket, transportErrorText } from "./connect-socket.ts";
import type { HostPool } from "./host-pool.ts";

/**
 * Envoy's defaults for responses: 80 KiB of head (its codec's MAX_RESPONSE_HEADERS_KB), 100 fields
 * (HttpProtocolOptions).
 */
const maxResponseHeadBytes = 80 * 1024;
const maxResponseFieldCount = 100;
/** ALPN where the TLS context names no protocols of its own, as Envoy's HTTP pools do. */
const http1Protocols: readonly string[] = ["http/1.1"];
const http2Protocols: readonly string[] = ["h2"];

/** What a stream learns of the connection that carries it. */
export interface UpstreamConnection {
  readonly id: number;
  readonly localAddress: string | undefined;
  /** Undefined = the connection is plain. */
  readonly tls: UpstreamTlsInfo | undefined;
  /** Undefined = bytes of a tunnel. */
  readonly protocol: UpstreamProtocol | undefined;
  /** Of the monotonic clock; -1 = it was not timed. */
  readonly connectStartedMs: number;
  readonly connectedMs: number;
}

/**
 * - `connecting`: not up yet, the connect time-out runs.
 * - `open`: takes streams; while it has none, the idle time-out runs.
 * - `draining`: takes no further ones, and ends with the last that it has.
 * - `closed`.
 */
type State = "connecting" | "open" | "draining" | "closed";

export class PooledConnection implements ClientCodecOwner, UpstreamConnection {
  readonly #pool: HostPool;
  readonly #cluster: Cluster;
  readonly #dataPath: DataPath;
  readonly #timer = new CallbackTimer(() => this.#onTimer());
  readonly #socket: Socket;
  readonly #codec: ClientCodec;
  #state: State = "connecting";
  tls: UpstreamTlsInfo | undefined = undefined;
  readonly connectStartedMs: number;
  connectedMs = -1;
  readonly id = nextConnectionId();
  /** The pool's own mark: it is among those that have capacity. */
  isListed = false;
  #openStreams = 0;
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
    this.connectStartedMs = dataPath.turn.nowMs;
    const { stats } = cluster;
    stats.upstreamConnectionsTotal.increment();
    (pool.protocol === "HTTP/2" ? stats.upstreamConnectionsHttp2 : stats.upstreamConnectionsHttp1).increment();
    countConnection(cluster, 1);
    pool.host.stats.connectionsTotal += 1;
    pool.host.stats.connectionsActive += 1;
    this.#socket = connectSocket(
      pool.host,
      cluster,
      dataPath,
      (chunk) => this.#codec.onData(chunk),
      {
        serverName: pool.serverName,
        verifiesServerName: pool.serverName !== undefined && cluster.autoServerName?.verifiesCertificate === true,
        defaultProtocols: pool.protocol === "HTTP/2" ? http2Protocols : http1Protocols,
      },
      pool.transport,
      pool.source,
    );
    this.#codec = openClientCodec(
      pool.protocol,
      this.#socket,
      this,
      {
        http2: cluster.http2,
        http2Stats: cluster.http2Stats,
        streamsBeforeSettings: pool.streamsPerConnection,
        maxHeadBytes: maxResponseHeadBytes,
        maxFieldCount: maxResponseFieldCount,
        enableTrailers: cluster.enableTrailers,
        bufferLimitBytes: cluster.perConnectionBufferLimitBytes,
      },
      dataPath,
    );
    if (cluster.connectTimeoutMs > 0) dataPath.timers.arm(this.#timer, cluster.connectTimeoutMs, dataPath.turn.nowMs);
  }

  get protocol(): UpstreamProtocol {
    return this.#pool.protocol;
  }

  get localAddress(): string | undefined {
    return (this.#localAddress ??= this.#codec.localAddress);
  }

  /** So many streams may be opened now. */
  get capacity(): number {
    return this.#state === "open" ? this.#codec.capacity : 0;
  }

  get isIdle(): boolean {
    return this.#state === "open" && this.#openStreams === 0;
  }

  /** Needs capacity. */
  open(receiver: ResponseReceiver): RequestSender {
    this.#openStreams += 1;
    this.#requestCount += 1;
    const limit = this.#cluster.maxRequestsPerConnection;
    if (limit > 0 && this.#requestCount >= limit) {
      this.#state = "draining";
      this.#cluster.stats.upstreamConnectionsMaxRequests.increment();
    }
    return this.#codec.open(receiver);
  }

  /** Ends after the streams that it has. One that comes up meanwhile is still wanted by those who wait for it. */
  drain(): void {
    if (this.isIdle) this.destroy();
    else if (this.#state === "open") this.#state = "draining";
  }

  /** Ends it now. */
  destroy(): void {
    this.#codec.destroy();
  }

  onConnected(tls: UpstreamTlsInfo | undefined): void {
    this.tls = tls;
    this.#dataPath.timers.disarm(this.#timer);
    this.#state = "open";
    this.#idleSinceMs = this.#dataPath.turn.nowMs;
    this.connectedMs = tls?.connectedMs ?? this.#idleSinceMs;
    this.#cluster.stats.lives.onConnected(this.#idleSinceMs - this.connectStartedMs);
    const { maxConnectionDurationMs } = this.#cluster;
    if (maxConnectionDurationMs > 0) this.#endsAtMs = this.#idleSinceMs + maxConnectionDurationMs;
    this.#armTimer(this.#idleSinceMs);
    this.#pool.onConnected(this);
  }

  onStreamLimit(streams: number): void {
    this.#pool.onStreamLimit(this, streams);
  }

  onGoAway(): void {
    this.#cluster.stats.upstreamConnectionsCloseNotify.increment();
  }

  onLastResponse(): void {
    this.#cluster.stats.upstreamConnectionsCloseNotify.increment();
  }

  #countBytes(): void {
    const { stats } = this.#cluster;
    const { bytesSent, bytesReceived } = this.#codec;
    stats.upstreamBytesSent.add(bytesSent - this.#countedSent);
    stats.upstreamBytesReceived.add(bytesReceived - this.#countedReceived);
    this.#countedSent = bytesSent;
    this.#countedReceived = bytesReceived;
  }

  onStreamEnd(reusable: boolean): void {
    this.#countBytes();
    this.#openStreams -= 1;
    if (!reusable) return;
    if (this.#openStreams === 0) {
      if (this.#state === "draining" || !this.#pool.host.active) {
        this.destroy();
        return;
      }
      this.#idleSinceMs = this.#dataPath.turn.nowMs;
    }
    this.#pool.onCapacity(this);
  }

  onClosed(error: NodeJS.ErrnoException | undefined): void {
    const before = this.#state;
    this.#state = "closed";
    this.#countBytes();
    this.#dataPath.timers.disarm(this.#timer);
    countConnection(this.#cluster, -1);
    countEnd(this.#cluster.stats, closedByPeer(this.#socket), this.#openStreams > 0);
    this.#cluster.stats.lives.onClosed(this.#dataPath.turn.nowMs - this.connectStartedMs);
    if (this.#requestCount > 0) this.#cluster.stats.lives.onRequests(this.#requestCount);
    this.#pool.host.stats.connectionsActive -= 1;
    if (before === "connecting") this.#connectFailed(error);
    else this.#pool.onConnectionClosed(this);
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

  #onTimer(): void {
    if (this.#state === "connecting") {
      this.#timedOut = true;
      this.destroy();
      return;
    }
    const nowMs = this.#dataPath.turn.nowMs;
    if (nowMs < this.#endsAtMs) {
      this.#armTimer(nowMs);
      return;
    }
    this.#cluster.stats.upstreamConnectionsMaxDuration.increment();
    this.drain();
  }

  /** For the end of its idle time or of its life, whichever comes first; too long idle, it ends now. */
  #armTimer(nowMs: number): void {
    const { idleTimeoutMs } = this.#cluster;
    const idleMs = this.#openStreams === 0 ? nowMs - this.#idleSinceMs : 0;
    const idleLeftMs = idleTimeoutMs > 0 ? idleTimeoutMs - idleMs : Infinity;
    const leftMs = Math.min(idleLeftMs, this.#endsAtMs - nowMs);
    if (leftMs <= 0) {
      this.#cluster.stats.upstreamConnectionsIdleTimeout.increment();
      this.destroy();
    } else if (leftMs < Infinity) this.#dataPath.timers.arm(this.#timer, leftMs, nowMs);
  }
}
