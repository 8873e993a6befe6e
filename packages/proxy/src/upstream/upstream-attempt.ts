// One try of a request at one host: gets a connection, sends the request, reads the response, and is cut off when its
// own time-out is over (Envoy: `UpstreamRequest`).
import { countRequest } from "./cluster-load.ts";
import type { Cluster, Host, UpstreamProtocol } from "../cluster/cluster.ts";
import type { RequestSender, StreamResetReason } from "../codec/stream-codec.ts";
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer, TimerEntry } from "../worker/timer-wheel.ts";
import type { HeaderMap } from "../http/header-map.ts";
import type { ResponseHead } from "../http/message.ts";
import { serverNameOf } from "./auto-server-name.ts";
import { type HostPool, hostPool, type PoolWaiter } from "./host-pool.ts";
import type { UpstreamConnection } from "./pooled-connection.ts";
import { TcpUpstream } from "./tcp-upstream.ts";

/** Whose try it is: the router's request, or one that the proxy itself sends. */
export interface AttemptOwner {
  /** Sends the request from its beginning. */
  onConnected(attempt: UpstreamAttempt, sender: RequestSender, connection: UpstreamConnection): void;
  /** Everything that was sent is still there. */
  canSendAgain(): boolean;
  onInformational(status: number, headers: HeaderMap): void;
  onResponseHead(attempt: UpstreamAttempt, head: ResponseHead, endStream: boolean): void;
  onResponseData(attempt: UpstreamAttempt, chunk: Buffer, endStream: boolean): void;
  onResponseTrailers(trailers: HeaderMap): void;
  /** `detail` is the transport's own words, or empty. */
  onReset(attempt: UpstreamAttempt, reason: StreamResetReason, detail: string, responded: boolean): void;
  onPerTryTimeout(attempt: UpstreamAttempt, details: string): void;
  /** The cluster's limit for one request at a host is over (max_stream_duration). */
  onMaxDuration(attempt: UpstreamAttempt): void;
  onUpstreamDrained(): void;
}

/**
 * - `waiting`: for a connection.
 * - `sending`: the request is on its way, no response yet.
 * - `responding`: the response head has come.
 * - `done`: the response is complete, or the try was given up.
 */
type State = "waiting" | "sending" | "responding" | "done";

export class UpstreamAttempt extends TimerEntry implements PoolWaiter {
  readonly host: Host;
  readonly #request: AttemptOwner;
  readonly #cluster: Cluster;
  readonly #dataPath: DataPath;
  #state: State = "waiting";
  #sender: RequestSender | undefined = undefined;
  #pool: HostPool | undefined = undefined;
  #tcp: TcpUpstream | undefined = undefined;
  #idleTimer: CallbackTimer | undefined = undefined;
  #idleTimeoutMs = 0;
  #durationTimer: CallbackTimer | undefined = undefined;
  #hasMoved = false;

  constructor(request: AttemptOwner, cluster: Cluster, host: Host, dataPath: DataPath) {
    super();
    this.#request = request;
    this.#cluster = cluster;
    this.host = host;
    this.#dataPath = dataPath;
  }

  /** Undefined while there is no connection: the body waits at the router. */
  get sender(): RequestSender | undefined {
    return this.#sender;
  }

  /** Asks for a connection; `tunnel` for one of bytes, behind a CONNECT that ends here. */
  start(tunnel: boolean, authority: string, protocol: UpstreamProtocol): void {
    const { stats, load, circuitBreakers } = this.#cluster;
    if (tunnel) {
      this.#tcp = new TcpUpstream(this.host, this.#cluster, this, this.#dataPath);
      return;
    }
    if (load.requests >= circuitBreakers.maxRequests) {
      stats.upstreamRequestActiveOverflow.increment();
      this.onConnectionFailure("overflow", "");
      return;
    }
    const serverName = this.#cluster.autoServerName === undefined ? undefined : serverNameOf(authority);
    this.#pool = hostPool(this.host, this.#cluster, this.#dataPath, protocol, serverName);
    this.#pool.acquire(this.#cluster, this);
  }

  /** The answer may be older than the request: a 408 to a connection on which nothing came. */
  isStaleAnswer({ status }: ResponseHead): boolean {
    return status === 408 && this.#sender?.mayHaveCrossed() === true;
  }

  /** So may be the end of a connection that had waited, where nothing came before it. */
  isStaleEnd(reason: StreamResetReason): boolean {
    return reason === "connection_termination" && this.#sender?.mayHaveCrossed() === true;
  }

  /** Envoy starts it once the request is complete, so that a slow client is not the host's fault. */
  armPerTryTimeout(timeoutMs: number): void {
    if (this.#state === "done" || timeoutMs === 0) return;
    this.#dataPath.timers.arm(this, timeoutMs, this.#dataPath.turn.nowMs);
  }

  /** Envoy: per_try_idle_timeout. */
  armIdleTimeout(timeoutMs: number): void {
    this.#idleTimeoutMs = timeoutMs;
    this.#idleTimer ??= new CallbackTimer(() => this.#request.onPerTryTimeout(this, "upstream_per_try_idle_timeout"));
    this.#dataPath.timers.arm(this.#idleTimer, timeoutMs, this.#dataPath.turn.nowMs);
  }

  #armDurationTimer(): void {
    const { maxStreamDurationMs, stats } = this.#cluster;
    if (maxStreamDurationMs === 0) return;
    this.#durationTimer = new CallbackTimer(() => {
      stats.upstreamRequestMaxDurationReached.increment();
      this.#request.onMaxDuration(this);
    });
    this.#dataPath.timers.arm(this.#durationTimer, maxStreamDurationMs, this.#dataPath.turn.nowMs);
  }

  onTimeout(): void {
    this.#request.onPerTryTimeout(this, "upstream_per_try_timeout");
  }

  onConnectionReady(sender: RequestSender, connection: UpstreamConnection): void {
    this.#state = "sending";
    this.#sender = sender;
    const { host } = this;
    const { stats } = this.#cluster;
    stats.upstreamRequestsTotal.increment();
    countRequest(this.#cluster, 1);
    host.stats.requestsTotal += 1;
    host.activeRequests += 1;
    this.#cluster.outlierDetection?.onConnected(host);
    this.#armDurationTimer();
    this.#request.onConnected(this, sender, connection);
  }

  onConnectionFailure(reason: StreamResetReason, detail: string): void {
    this.#state = "done";
    this.#dataPath.timers.disarm(this);
    this.host.stats.requestsError += 1;
    // A limit of ours that is reached is not the host's fault.
    if (reason !== "overflow") this.#cluster.outlierDetection?.onNoResponse(this.host, "reset");
    this.#request.onReset(this, reason, detail, false);
  }

  onInformational(status: number, headers: HeaderMap): void {
    this.#request.onInformational(status, headers);
  }

  onResponseHead(head: ResponseHead, endStream: boolean): void {
    this.#state = "responding";
    this.#dataPath.timers.disarm(this);
    this.#countStatus(head.status);
    this.#cluster.outlierDetection?.onResponse(this.host, statusOf(head));
    if (this.#idleTimer !== undefined) this.armIdleTimeout(this.#idleTimeoutMs);
    if (endStream) this.#finish();
    this.#request.onResponseHead(this, head, endStream);
  }

  onResponseData(chunk: Buffer, endStream: boolean): void {
    if (this.#idleTimer !== undefined) this.armIdleTimeout(this.#idleTimeoutMs);
    if (endStream) this.#finish();
    this.#request.onResponseData(this, chunk, endStream);
  }

  onResponseTrailers(trailers: HeaderMap): void {
    this.#finish();
    this.#request.onResponseTrailers(trailers);
  }

  onUpstreamReset(reason: StreamResetReason, hasLeft: boolean): void {
    const responded = this.#state === "responding";
    this.#finish();
    // No try was made: another stream takes its place. Once, since a host could end them all like that. A host that has
    // just been connected to refuses what is beyond a limit that we have not heard yet (RFC 9113 §5.1.2, §8.7).
    const isUntouched = !hasLeft || (reason === "remote_refused_stream_reset" && !responded);
    if (isUntouched && !this.#hasMoved && this.#pool !== undefined && this.#request.canSendAgain()) {
      this.#hasMoved = true;
      this.#state = "waiting";
      this.#sender = undefined;
      this.#pool.acquire(this.#cluster, this);
      return;
    }
    this.#cluster.stats.upstreamRequestResets.increment();
    if (reason === "protocol_error") this.#cluster.stats.upstreamProtocolErrors.increment();
    if (!responded) this.host.stats.requestsError += 1;
    this.#cluster.outlierDetection?.onNoResponse(this.host, "reset");
    this.#request.onReset(this, reason, "", responded);
  }

  onUpstreamDrained(): void {
    this.#request.onUpstreamDrained();
  }

  /** Gives the try up because its time is over. */
  cancelForTimeout(): void {
    this.host.stats.requestTimeouts += 1;
    this.#cluster.outlierDetection?.onNoResponse(this.host, "timeout");
    this.cancel();
  }

  /** Gives the try up; nothing is heard of it any more. */
  cancel(): void {
    if (this.#state === "done") return;
    if (this.#state === "waiting") {
      this.#state = "done";
      this.#dataPath.timers.disarm(this);
      if (this.#tcp !== undefined) this.#tcp.cancel();
      else this.#pool?.cancel(this);
      return;
    }
    this.#finish();
    this.#cluster.stats.upstreamRequestResets.increment();
    this.#sender!.resetStream("local_reset");
  }

  #finish(): void {
    if (this.#state === "done") return;
    this.#state = "done";
    this.#dataPath.timers.disarm(this);
    if (this.#idleTimer !== undefined) this.#dataPath.timers.disarm(this.#idleTimer);
    if (this.#durationTimer !== undefined) this.#dataPath.timers.disarm(this.#durationTimer);
    countRequest(this.#cluster, -1);
    this.host.activeRequests -= 1;
  }

  #countStatus(status: number): void {
    const { stats } = this.#cluster;
    if (status >= 500) {
      stats.upstreamRequests5xx.increment();
      this.host.stats.requestsError += 1;
      return;
    }
    this.host.stats.requestsSuccess += 1;
    if (status >= 400) stats.upstreamRequests4xx.increment();
    else if (status >= 300) stats.upstreamRequests3xx.increment();
    else if (status >= 200) stats.upstreamRequests2xx.increment();
  }
}

/** What a gRPC status means in HTTP, by its number (Envoy: Grpc::Utility::grpcToHttpStatus). */
const httpStatusOfGrpc: readonly number[] = [
  200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401,
];

/** A gRPC answer without a body says how it went in its head. */
function statusOf(head: ResponseHead): number {
  const grpcStatus = head.headers.get("grpc-status");
  if (grpcStatus === undefined) return head.status;
  return httpStatusOfGrpc[Number(grpcStatus)] ?? head.status;
}
