// One connection to a host whose bytes are passed on as they are: the far side of the TCP proxy and of a CONNECT that
// ends here (Envoy: `TcpUpstream`, `Tcp::ConnPool`). Each side can be ended by itself.
import { countConnection, countEnd } from "./cluster-load.ts";
import type { Socket } from "node:net";
import { SocketOutput } from "../worker/socket-output.ts";
import type { StreamResetReason } from "../codec/stream-codec.ts";
import type { Cluster, Host } from "../cluster/cluster.ts";
import { ipPortText } from "../http/ip-port-text.ts";
import type { UpstreamSource } from "../http/upstream-source.ts";
import { nextConnectionId } from "../worker/connection-id.ts";
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import type { UpstreamTlsInfo } from "../tls/tls-info.ts";
import { readyEventOf } from "../tls/ready-event.ts";
import { connectFailure, connectSocket, transportErrorText } from "./connect-socket.ts";
import { resetSocket } from "./reset-socket.ts";

/** What happens to the connection; every call is within a turn. */
export interface TcpConnectionOwner {
  onConnected(): void;
  /** It never came about, and nothing else follows. `detail` is the transport's own words, empty for none. */
  onConnectFailure(reason: StreamResetReason, detail: string): void;
  /** `chunk` is a view that is valid during the call. */
  onData(chunk: Buffer): void;
  /** The host sends no more. */
  onEnd(): void;
  /** What was written has left after `isOverHighWatermark` was true. */
  onDrained(): void;
  /** It is gone after it was up; `wasReset`: not by its own ends. */
  onClosed(wasReset: boolean): void;
}

export class TcpConnection {
  readonly #socket: Socket;
  readonly #output: SocketOutput;
  readonly #owner: TcpConnectionOwner;
  readonly #cluster: Cluster;
  readonly #host: Host;
  readonly #dataPath: DataPath;
  readonly #connectTimer = new CallbackTimer(() => this.#onConnectTimeout());
  readonly #startedMs: number;
  readonly id = nextConnectionId();
  #connected = false;
  /** Undefined = the connection is plain, or not up yet. */
  tls: UpstreamTlsInfo | undefined = undefined;
  /** The owner wants to hear no more. */
  #abandoned = false;
  #timedOut = false;
  /** Each side ends by itself: the host did so last, or the connection broke. */
  #isEndedByHost = false;
  #error: NodeJS.ErrnoException | undefined = undefined;

  constructor(
    host: Host,
    cluster: Cluster,
    owner: TcpConnectionOwner,
    dataPath: DataPath,
    source: UpstreamSource | undefined,
  ) {
    this.#host = host;
    this.#cluster = cluster;
    this.#owner = owner;
    this.#dataPath = dataPath;
    this.#startedMs = dataPath.clock.monotonicMs();
    cluster.stats.upstreamConnectionsTotal.increment();
    countConnection(cluster, 1);
    host.stats.connectionsTotal += 1;
    host.stats.connectionsActive += 1;
    const socket = connectSocket(host, cluster, dataPath, (chunk) => this.#onData(chunk), undefined, undefined, source);
    this.#socket = socket;
    this.#output = new SocketOutput(socket, dataPath, cluster.perConnectionBufferLimitBytes, () =>
      this.#tell(() => owner.onDrained()),
    );
    socket.on(readyEventOf(socket), (tls?: UpstreamTlsInfo) => this.#onConnect(tls));
    socket.on("end", () => {
      this.#isEndedByHost = socket.writableEnded;
      this.#tell(() => owner.onEnd());
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      this.#error = error;
      this.#isEndedByHost = true;
    });
    socket.on("close", () => this.#onClose());
    const { connectTimeoutMs } = cluster;
    if (connectTimeoutMs > 0) dataPath.timers.arm(this.#connectTimer, connectTimeoutMs, dataPath.turn.nowMs);
  }

  get localAddress(): string | undefined {
    const { localAddress, localPort } = this.#socket;
    return localAddress === undefined ? undefined : ipPortText(localAddress, localPort ?? 0);
  }

  write(chunk: Buffer): void {
    this.#cluster.stats.upstreamBytesSent.add(chunk.length);
    this.#output.writeBody(chunk);
  }

  /** Ends our side behind what has been written. */
  end(): void {
    this.#output.end();
  }

  isOverHighWatermark(): boolean {
    return this.#output.isOverHighWatermark();
  }

  /** Stops and restarts reading. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /**
   * Ends both sides now and says nothing more to the owner; `withReset` tells the host that what it sent was in vain.
   */
  abandon(withReset = false): void {
    this.#abandoned = true;
    this.#output.flush();
    if (withReset && this.#connected) resetSocket(this.#socket);
    else this.#socket.destroy();
  }

  #tell(action: () => void): void {
    if (!this.#abandoned) this.#dataPath.turn.run(action);
  }

  #onData(chunk: Buffer): void {
    this.#cluster.stats.upstreamBytesReceived.add(chunk.length);
    this.#tell(() => this.#owner.onData(chunk));
  }

  #onConnect(tls: UpstreamTlsInfo | undefined): void {
    this.#connected = true;
    this.#cluster.stats.lives.onConnected(this.#dataPath.clock.monotonicMs() - this.#startedMs);
    this.tls = tls;
    this.#dataPath.timers.disarm(this.#connectTimer);
    this.#tell(() => this.#owner.onConnected());
  }

  #onConnectTimeout(): void {
    this.#timedOut = true;
    this.#socket.destroy();
  }

  #onClose(): void {
    const { stats } = this.#cluster;
    countConnection(this.#cluster, -1);
    countEnd(stats, this.#isEndedByHost, this.#connected);
    stats.lives.onClosed(this.#dataPath.clock.monotonicMs() - this.#startedMs);
    this.#host.stats.connectionsActive -= 1;
    this.#dataPath.timers.disarm(this.#connectTimer);
    if (this.#connected) {
      this.#tell(() => this.#owner.onClosed(this.#error !== undefined));
      return;
    }
    if (this.#abandoned) {
      stats.upstreamRequestsCancelled.increment();
      return;
    }
    stats.upstreamRequestsPendingFailed.increment();
    stats.upstreamConnectFailures.increment();
    this.#host.stats.connectFailures += 1;
    if (this.#timedOut) {
      stats.upstreamConnectTimeouts.increment();
      this.#tell(() => this.#owner.onConnectFailure("connection_timeout", ""));
      return;
    }
    this.#tell(() => this.#owner.onConnectFailure(connectFailure(this.#error), transportErrorText(this.#error)));
  }
}
