// The far side of a CONNECT that ends here: a connection to the host, whose bytes are the body of the tunnel (Envoy:
// UpgradeConfig.connect_config, `TcpUpstream`).
import type { RequestSender, StreamResetReason } from "../codec/stream-codec.ts";
import type { Cluster, Host } from "../cluster/cluster.ts";
import type { DataPath } from "../worker/data-path.ts";
import type { UpstreamTlsInfo } from "../tls/tls-info.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { RequestHead } from "../http/message.ts";
import type { UpstreamSource } from "../http/upstream-source.ts";
import type { StreamBytes } from "../http/stream-bytes.ts";
import type { PoolWaiter } from "./host-pool.ts";
import type { UpstreamConnection } from "./pooled-connection.ts";
import { TcpConnection, type TcpConnectionOwner } from "./tcp-connection.ts";

const noBytes: Buffer = Buffer.alloc(0);

export class TcpUpstream implements RequestSender, StreamBytes, UpstreamConnection, TcpConnectionOwner {
  readonly #connection: TcpConnection;
  readonly #waiter: PoolWaiter;

  constructor(
    host: Host,
    cluster: Cluster,
    waiter: PoolWaiter,
    dataPath: DataPath,
    source: UpstreamSource | undefined,
  ) {
    this.#waiter = waiter;
    this.#connection = new TcpConnection(host, cluster, this, dataPath, source);
  }

  readonly protocol = undefined;
  readonly connectStartedMs = -1;
  readonly connectedMs = -1;
  wireBytesSent = 0;
  wireBytesReceived = 0;
  readonly headerBytesSent = 0;
  readonly headerBytesReceived = 0;
  readonly decompressedHeaderBytesSent = 0;
  readonly decompressedHeaderBytesReceived = 0;
  readonly bytes: StreamBytes = this;

  get id(): number {
    return this.#connection.id;
  }

  get localAddress(): string | undefined {
    return this.#connection.localAddress;
  }

  get tls(): UpstreamTlsInfo | undefined {
    return this.#connection.tls;
  }

  cancel(): void {
    this.#connection.abandon();
  }

  // RequestSender

  sendRequestHead(_head: RequestHead, _endStream: boolean): void {
    // The connection itself is the answer to CONNECT.
    this.#waiter.onResponseHead({ status: 200, headers: new HeaderMap(), upgrade: undefined }, false);
  }

  sendRequestData(chunk: Buffer, endStream: boolean): void {
    this.wireBytesSent += chunk.length;
    this.#connection.write(chunk);
    if (endStream) this.#connection.end();
  }

  sendRequestTrailers(_trailers: HeaderMap): void {
    this.#connection.end();
  }

  resetStream(_reason: StreamResetReason): void {
    this.cancel();
  }

  isOverHighWatermark(): boolean {
    return this.#connection.isOverHighWatermark();
  }

  mayHaveCrossed(): boolean {
    return false;
  }

  pauseResponse(): void {
    this.#connection.pause();
  }

  resumeResponse(): void {
    this.#connection.resume();
  }

  // TcpConnectionOwner

  onConnected(): void {
    this.#waiter.onConnectionReady(this, this);
  }

  onConnectFailure(reason: StreamResetReason, detail: string): void {
    this.#waiter.onConnectionFailure(reason, detail);
  }

  onData(chunk: Buffer): void {
    this.wireBytesReceived += chunk.length;
    this.#waiter.onResponseData(chunk, false);
  }

  onEnd(): void {
    this.#waiter.onResponseData(noBytes, true);
    // The stream has ended with it, and nobody ends our side any more.
    this.#connection.abandon();
  }

  onDrained(): void {
    this.#waiter.onUpstreamDrained();
  }

  onClosed(wasReset: boolean): void {
    if (wasReset) this.#waiter.onUpstreamReset("connection_termination", true);
  }
}
