// The far side of a CONNECT that ends here: a plain TCP connection to the host, whose bytes are the body of the tunnel
// (Envoy: UpgradeConfig.connect_config, `TcpUpstream`).
import type { Socket } from "node:net";
import { SocketOutput } from "../codec/http1/socket-output.ts";
import type { RequestSender } from "../codec/stream-codec.ts";
import { type Cluster, type Host, ipPortText } from "../cluster/cluster.ts";
import type { DataPath } from "../connection/data-path.ts";
import { CallbackTimer } from "../connection/timer-wheel.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { RequestHead } from "../http/message.ts";
import { readyEventOf } from "../tls/ready-event.ts";
import { connectSocket, transportErrorText } from "./connect-socket.ts";
import type { PoolWaiter, UpstreamConnection } from "./host-pool.ts";

const noBytes: Buffer = Buffer.alloc(0);

export class TcpUpstream implements RequestSender, UpstreamConnection {
  readonly #socket: Socket;
  readonly #output: SocketOutput;
  readonly #waiter: PoolWaiter;
  readonly #cluster: Cluster;
  readonly #host: Host;
  readonly #dataPath: DataPath;
  readonly #connectTimer = new CallbackTimer(() => this.#onConnectTimeout());
  #connected = false;
  /** The waiter wants to hear no more. */
  #cancelled = false;
  #timedOut = false;
  #error: NodeJS.ErrnoException | undefined = undefined;

  constructor(host: Host, cluster: Cluster, waiter: PoolWaiter, dataPath: DataPath) {
    this.#host = host;
    this.#cluster = cluster;
    this.#waiter = waiter;
    this.#dataPath = dataPath;
    cluster.stats.upstreamConnectionsTotal.increment();
    cluster.stats.upstreamConnectionsActive.add(1);
    host.stats.connectionsTotal += 1;
    host.stats.connectionsActive += 1;
    const socket = connectSocket(host, cluster, dataPath, (chunk) =>
      this.#tell(() => waiter.onResponseData(chunk, false)),
    );
    this.#socket = socket;
    this.#output = new SocketOutput(socket, dataPath, cluster.perConnectionBufferLimitBytes, () =>
      this.#tell(() => waiter.onUpstreamDrained()),
    );
    socket.on(readyEventOf(socket), () => this.#onConnect());
    socket.on("end", () => {
      this.#tell(() => waiter.onResponseData(noBytes, true));
      // The stream has ended with it, and nobody ends our side any more.
      socket.destroy();
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      this.#error = error;
    });
    socket.on("close", () => this.#onClose());
    if (cluster.connectTimeoutMs > 0)
      dataPath.timers.arm(this.#connectTimer, cluster.connectTimeoutMs, dataPath.turn.nowMs);
  }

  get sender(): RequestSender {
    return this;
  }

  get localAddress(): string | undefined {
    const { localAddress, localPort } = this.#socket;
    return localAddress === undefined ? undefined : ipPortText(localAddress, localPort ?? 0);
  }

  cancel(): void {
    this.#cancelled = true;
    this.#socket.destroy();
  }

  sendRequestHead(_head: RequestHead, _endStream: boolean): void {
    // The connection itself is the answer to CONNECT.
    this.#waiter.onResponseHead({ status: 200, headers: new HeaderMap(), upgrade: undefined }, false);
  }

  sendRequestData(chunk: Buffer, endStream: boolean): void {
    this.#output.writeBody(chunk);
    if (endStream) this.#output.end();
  }

  sendRequestTrailers(_trailers: HeaderMap): void {
    this.#output.end();
  }

  resetStream(): void {
    this.cancel();
  }

  isOverHighWatermark(): boolean {
    return this.#output.isOverHighWatermark();
  }

  pauseResponse(): void {
    this.#socket.pause();
  }

  resumeResponse(): void {
    this.#socket.resume();
  }

  #tell(action: () => void): void {
    if (!this.#cancelled) this.#dataPath.turn.run(action);
  }

  #onConnect(): void {
    this.#connected = true;
    this.#dataPath.timers.disarm(this.#connectTimer);
    this.#tell(() => this.#waiter.onConnectionReady(this));
  }

  #onConnectTimeout(): void {
    this.#timedOut = true;
    this.#socket.destroy();
  }

  #onClose(): void {
    const { stats } = this.#cluster;
    stats.upstreamConnectionsActive.add(-1);
    this.#host.stats.connectionsActive -= 1;
    this.#dataPath.timers.disarm(this.#connectTimer);
    if (this.#connected) {
      if (this.#error !== undefined) this.#tell(() => this.#waiter.onUpstreamReset("connection_termination"));
      return;
    }
    stats.upstreamConnectFailures.increment();
    this.#host.stats.connectFailures += 1;
    if (this.#timedOut) this.#tell(() => this.#waiter.onConnectionFailure("connection_timeout", ""));
    else {
      const detail = transportErrorText(this.#error);
      this.#tell(() => this.#waiter.onConnectionFailure("remote_connection_failure", detail));
    }
  }
}
