// One try of a request at one host: gets a connection, sends the request, reads the response, and is cut off when its
// own time-out is over (Envoy: `UpstreamRequest`).
import { countRequest } from "./cluster-load.ts";
import type { AnswerOrigin } from "../cluster/answer-stats.ts";
import type { Cluster, Host, UpstreamProtocol } from "../cluster/cluster.ts";
import type { RequestSender, StreamResetReason } from "../codec/stream-codec.ts";
import type { UpstreamSource } from "../http/upstream-source.ts";
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer, tickMs, TimerEntry } from "../worker/timer-wheel.ts";
import { grpcStatuses, httpStatusOfGrpc } from "../http/grpc-status.ts";
import type { HeaderMap } from "../http/header-map.ts";
import type { ResponseHead } from "../http/message.ts";
import { serverNameOf } from "./auto-server-name.ts";
import { type HostPool, hostPool, type PoolWaiter } from "./host-pool.ts";
import type { UpstreamConnection } from "./pooled-connection.ts";
import { TcpUpstream } from "./tcp-upstream.ts";

/** Whose try it is: the router's request, or one that the proxy itself sends. */
export interface AttemptOwner {
  /** Of a client of the mesh's own, or of the proxy itself. */
  readonly isInternal: boolean;
  /** The host says how it went in `grpc-status`. */
  readonly isGrpc: boolean;
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
  /** The whole answer has been passed on: what its stream took on the wire is another one's once this returns. */
  onAnswered?(): void;
  /** An answer of gRPC broke off, or its time was over, before the host had said how it went. */
  onGrpcCutOff?(): void;
}

/**
 * - `waiting`: for a connection.
 * - `sending`: the request is on its way, no response yet.
 * - `responding`: the response head has come.
 * - `done`: the response is complete, or the try was given up.
 */
type State = "waiting" | "sending" | "responding" | "done";

export class UpstreamAttempt extends TimerEntry implements PoolWaiter, AnswerOrigin {
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
  /** A gRPC call whose status comes behind its messages: only then is it known how it went (Envoy). */
  #awaitsGrpcStatus = false;
  /** Its answer was none that the client shall see. */
  #isRepeated = false;
  /** Its answer says so, or its host's metadata does. */
  isCanary = false;
  /** As its owner's, looked up once for each answer. */
  isInternal = false;

  constructor(request: AttemptOwner, cluster: Cluster, host: Host, dataPath: DataPath) {
    super();
    this.#request = request;
    this.#cluster = cluster;
    this.host = host;
    this.#dataPath = dataPath;
  }

  get zone(): string {
    return this.host.zone;
  }

  /** Undefined while there is no connection: the body waits at the router. */
  get sender(): RequestSender | undefined {
    return this.#sender;
  }

  /** Asks for a connection; `tunnel` for one of bytes, behind a CONNECT that ends here. */
  start(tunnel: boolean, authority: string, protocol: UpstreamProtocol, source?: UpstreamSource): void {
    const { stats, load, circuitBreakers } = this.#cluster;
    if (tunnel) {
      this.#tcp = new TcpUpstream(this.host, this.#cluster, this, this.#dataPath, source);
      return;
    }
    if (load.requests >= circuitBreakers.maxRequests) {
      stats.upstreamRequestActiveOverflow.increment();
      this.onConnectionFailure("overflow", "");
      return;
    }
    const serverName = this.#cluster.autoServerName === undefined ? undefined : serverNameOf(authority);
    this.#pool = hostPool(this.host, this.#cluster, this.#dataPath, protocol, serverName, source);
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

  // The host and its sidecar count the same time, which `grpc-timeout` has told them, and may see its end before our
  // coarse wheel does: it is the try that has timed out, or whether it is repeated would be a matter of luck.
  #isTimeUp(): boolean {
    return this.armed && !this.isDueAfter(this.#dataPath.turn.nowMs + tickMs);
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
    const grpcStatus = this.#request.isGrpc ? head.headers.get("grpc-status") : undefined;
    if (Number(grpcStatus) === grpcStatuses.deadlineExceeded && this.#isTimeUp()) {
      this.onTimeout();
      return;
    }
    this.#state = "responding";
    this.isInternal = this.#request.isInternal;
    this.isCanary = this.host.isCanary || head.headers.get("x-envoy-upstream-canary") === "true";
    this.#dataPath.timers.disarm(this);
    const meant = grpcStatus === undefined ? undefined : httpStatusOfGrpc(grpcStatus);
    this.#cluster.outlierDetection?.onResponse(this.host, meant ?? head.status);
    if (this.#cluster.healthChecker !== undefined && head.headers.has("x-envoy-immediate-health-check-fail"))
      this.#cluster.healthChecker.failNow(this.host);
    if (this.#idleTimer !== undefined) this.armIdleTimeout(this.#idleTimeoutMs);
    if (endStream) this.#finish();
    this.#request.onResponseHead(this, head, endStream);
    this.#countAnswer(head.status, grpcStatus, endStream);
    if (endStream) this.#request.onAnswered?.();
  }

  onResponseData(chunk: Buffer, endStream: boolean): void {
    if (this.#idleTimer !== undefined) this.armIdleTimeout(this.#idleTimeoutMs);
    if (endStream) {
      this.#finish();
      this.#countGrpcEnd(undefined);
    }
    this.#request.onResponseData(this, chunk, endStream);
    if (endStream) this.#request.onAnswered?.();
  }

  onResponseTrailers(trailers: HeaderMap): void {
    this.#finish();
    if (this.#awaitsGrpcStatus) this.#countGrpcEnd(trailers.get("grpc-status"));
    this.#request.onResponseTrailers(trailers);
    this.#request.onAnswered?.();
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
    this.#countReset(reason);
    if (responded) this.#cutOff();
    else this.host.stats.requestsError += 1;
    this.#cluster.outlierDetection?.onNoResponse(this.host, "reset");
    this.#request.onReset(this, reason, "", responded);
  }

  /** The answer has been passed on as a whole. */
  countTime(tookMs: number): void {
    this.#cluster.stats.answers.onEnd(tookMs, this);
  }

  onUpstreamDrained(): void {
    this.#request.onUpstreamDrained();
  }

  /** Gives the try up because its time is over. */
  cancelForTimeout(): void {
    this.host.stats.requestTimeouts += 1;
    if (this.#state === "sending") this.host.stats.requestsError += 1;
    else this.#cutOff();
    this.#cluster.outlierDetection?.onNoResponse(this.host, "timeout");
    this.cancel();
  }

  /** Of an answer in whose place another is asked for. */
  cancelForRetry(): void {
    this.#isRepeated = true;
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
    this.#countReset("local_reset");
    this.#sender!.resetStream("local_reset");
  }

  /** As Envoy's pools: HTTP/1.1 has no streams that could be reset. */
  #countReset(reason: StreamResetReason): void {
    const { stats } = this.#cluster;
    if (reason === "protocol_error") stats.upstreamProtocolErrors.increment();
    if (this.#pool?.protocol !== "HTTP/2") return;
    if (reason === "connection_termination") stats.upstreamRequestsPendingFailed.increment();
    else if (reason === "remote_reset") stats.upstreamRequestRemoteResets.increment();
    else if (reason !== "remote_refused_stream_reset") stats.upstreamRequestLocalResets.increment();
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

  #countAnswer(status: number, grpcStatus: string | undefined, endStream: boolean): void {
    const { stats } = this.host;
    if (this.#isRepeated) {
      stats.requestsError += 1;
      this.#cluster.stats.answers.onRepeated(status);
      return;
    }
    this.#cluster.stats.answers.onAnswer(status, this);
    if (status >= 500) stats.requestsError += 1;
    else if (!this.#request.isGrpc) stats.requestsSuccess += 1;
    else {
      this.#awaitsGrpcStatus = true;
      if (endStream) this.#countGrpcEnd(grpcStatus);
    }
  }

  #cutOff(): void {
    if (this.#awaitsGrpcStatus) this.#request.onGrpcCutOff?.();
    this.#countGrpcEnd(undefined);
  }

  /** A call that ends without a status has failed. */
  #countGrpcEnd(grpcStatus: string | undefined): void {
    if (!this.#awaitsGrpcStatus) return;
    this.#awaitsGrpcStatus = false;
    const isSuccess = grpcStatus !== undefined && (httpStatusOfGrpc(grpcStatus) ?? 500) < 500;
    if (isSuccess) this.host.stats.requestsSuccess += 1;
    else this.host.stats.requestsError += 1;
  }
}
