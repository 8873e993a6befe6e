// One request on its way through the router: its tries one after the other, what of its body must be kept to repeat it,
// its time-out as a whole, and the answer that comes of it (Envoy: `Router::Filter`).
import type { Cluster, Host, LoadBalancerContext } from "../../../cluster/cluster.ts";
import type { RequestSender, StreamResetReason } from "../../../codec/stream-codec.ts";
import { CallbackTimer, TimerEntry } from "../../../worker/timer-wheel.ts";
import type { HttpStream, LocalReply } from "../../../http/filter.ts";
import { BodyBlocks } from "../../../http/body-blocks.ts";
import { isGrpc } from "../../../http/grpc-status.ts";
import type { HeaderMap } from "../../../http/header-map.ts";
import { isTunnelStart, type ResponseHead } from "../../../http/message.ts";
import { responseFlags } from "../../../http/response-flags.ts";
import { rewriteAuthority } from "../../../route/rewrite-authority.ts";
import type { ForwardAction } from "../../../route/route-table.ts";
import type { UpstreamConnection } from "../../../upstream/pooled-connection.ts";
import { protocolFor } from "../../../upstream/protocol-for.ts";
import { UpstreamAttempt } from "../../../upstream/upstream-attempt.ts";
import {
  flagOfReset,
  answerInPlace,
  countTimedOutTry,
  isInternalRequest,
  lastedTooLong,
  noCluster,
  answeredTry,
  noHealthyHost,
  resetBeforeResponse,
  resetTry,
  timedOut,
  timedOutTry,
  unresolvedAuthority,
} from "./failure-replies.ts";
import { isIdempotent, type RetryDecision, RetryState } from "./retry-state.ts";
import type { RouterFilterConfig } from "./router-config.ts";
import { noTimeouts, takeTimeouts, tellTimeout } from "./timeouts.ts";

/** Extends its own timer, that of the whole request. */
export class RouterRequest extends TimerEntry implements LoadBalancerContext {
  readonly #stream: HttpStream;
  readonly #action: ForwardAction;
  readonly #config: RouterFilterConfig;
  #cluster: Cluster | undefined = undefined;
  #attempt: UpstreamAttempt | undefined = undefined;
  #retry: RetryState | undefined = undefined;
  #backOffTimer: CallbackTimer | undefined = undefined;
  #triedHosts: Host[] | undefined = undefined;
  #attemptCount = 0;

  #requestEnded: boolean;
  #trailers: HeaderMap | undefined = undefined;
  /** Body kept for a connection that is still being made, or for another try. */
  #kept: BodyBlocks | undefined = undefined;
  /** Of the body so far, kept or not. */
  #bodyBytes = 0;
  #requestPaused = false;
  #responsePaused = false;
  #abandoned = false;
  /** CONNECT ends here, and plain bytes go on. */
  readonly #isTunnel: boolean;
  readonly isGrpc: boolean;
  /** The upstream speaks another protocol from its 101 on. */
  #isUpgraded = false;
  #timeouts = noTimeouts;
  #requestEndedMs = 0;

  constructor(stream: HttpStream, action: ForwardAction, config: RouterFilterConfig, endStream: boolean) {
    super();
    this.#stream = stream;
    this.#action = action;
    this.#config = config;
    this.#requestEnded = endStream;
    const upgrade = stream.request.upgrade;
    this.isGrpc = isGrpc(stream.request.headers);
    this.#isTunnel = upgrade === "connect" && action.upgrades?.get(upgrade)?.terminatesConnect === true;
  }

  start(): void {
    const stream = this.#stream;
    const { info, request, dataPath } = stream;
    const action = this.#action;
    const cluster = action.clusterSlot.current;
    if (cluster === undefined) {
      this.#config.stats.noCluster.increment();
      stream.sendLocalReply(noCluster(action.clusterNotFoundStatus));
      return;
    }
    this.#cluster = cluster;
    info.cluster = cluster;
    this.#timeouts = takeTimeouts(request, action, this.#config, this.isGrpc);
    action.finalizeRequest(request, info);
    this.#retry = RetryState.of(request, action.retryPolicy, cluster, dataPath.random);
    if (this.#requestEnded) this.#onRequestEnd();
    this.#try();
  }

  get isInternal(): boolean {
    return isInternalRequest(this.#stream.request.headers);
  }

  get maxHostPicks(): number {
    return this.#retry?.maxHostPicks ?? 1;
  }

  shouldAvoid(host: Host): boolean {
    return this.#triedHosts !== undefined && this.#triedHosts.includes(host);
  }

  #try(): void {
    this.#attemptCount += 1;
    this.#stream.info.attemptCount = this.#attemptCount;
    const cluster = this.#cluster!;
    if (cluster.resolveAuthority !== undefined) return this.#tryResolved(cluster);
    const context = this.#retry?.avoidPreviousHosts === true ? this : undefined;
    const host = cluster.hostOfDestination?.(this.#stream.info) ?? cluster.loadBalancer.chooseHost(context);
    if (host !== undefined) return this.#tryAt(host);
    cluster.stats.noHealthyHosts.increment();
    answerInPlace(this.#stream, cluster, noHealthyHost);
  }

  // An update puts a new cluster of the same name in place and leaves the old one without hosts: a later try goes to
  // the new one, or the update would fail the request.
  #followCluster(): void {
    const current = this.#action.clusterSlot.current;
    if (current === undefined || current === this.#cluster) return;
    this.#cluster = current;
    this.#stream.info.cluster = current;
  }

  #tryResolved(cluster: Cluster): void {
    const { dataPath, request } = this.#stream;
    const onHost = (host: Host | undefined): void => {
      if (this.#abandoned) return;
      dataPath.turn.run(() => {
        if (host !== undefined) this.#tryAt(host);
        else this.#stream.sendLocalReply(unresolvedAuthority);
      });
    };
    cluster.resolveAuthority!(request.authority).then(onHost, () => onHost(undefined));
  }

  #tryAt(host: Host): void {
    const stream = this.#stream;
    const { info, request } = stream;
    info.triesUpstream(host, stream.dataPath.turn.nowMs);
    if (this.#action.autoHostRewrite && host.hostname !== "") {
      rewriteAuthority(request, host.hostname, this.#action.appendForwardedHost);
    }
    if (this.#action.includeRequestAttemptCount)
      request.headers.set("x-envoy-attempt-count", String(this.#attemptCount));
    const elapsedMs = this.#requestEndedMs > 0 ? stream.dataPath.turn.nowMs - this.#requestEndedMs : 0;
    tellTimeout(request.headers, this.#timeouts, elapsedMs, this.#config.suppressEnvoyHeaders);
    stream.beginTry();
    this.#attempt = new UpstreamAttempt(this, this.#cluster!, host, stream.dataPath);
    const protocol = protocolFor(this.#cluster!, request.protocol);
    this.#attempt.start(this.#isTunnel, request.authority, protocol, info.listener?.upstreamSource);
    const { routerLog } = stream.dataPath;
    if (!routerLog.debugEnabled) return;
    const cluster = this.#cluster!.name;
    routerLog.debug("upstream request", { cluster, host: host.addressText, attempt: this.#attemptCount });
  }

  onRequestData(chunk: Buffer, endStream: boolean): void {
    if (endStream) this.#onRequestEnd();
    const sender = this.#attempt?.sender;
    const isKept = sender === undefined || this.#retry !== undefined;
    this.#bodyBytes += chunk.length;
    if (isKept && chunk.length > 0) this.#keep(chunk, sender);
    if (sender === undefined) return;
    sender.sendRequestData(chunk, endStream);
    if (!endStream && sender.isOverHighWatermark()) this.#pauseRequest();
  }

  onRequestTrailers(trailers: HeaderMap): void {
    this.#trailers = trailers;
    this.#onRequestEnd();
    this.#attempt?.sender?.sendRequestTrailers(trailers);
  }

  #keep(chunk: Buffer, sender: RequestSender | undefined): void {
    if (sender !== undefined && this.#bodyBytes > this.#stream.bufferLimitBytes) {
      // Too much to keep for another try: the request goes on without one (Envoy: retry_or_shadow_abandoned).
      this.#retry?.abandon();
      this.#retry = undefined;
      this.#kept = this.#kept?.release();
      return;
    }
    (this.#kept ??= new BodyBlocks(this.#stream.dataPath.buffers)).keep(chunk);
    if (sender === undefined && this.#bodyBytes > this.#stream.bufferLimitBytes) this.#pauseRequest();
  }

  #pauseRequest(): void {
    if (this.#requestPaused) return;
    this.#requestPaused = true;
    this.#cluster!.stats.upstreamBackedUp.increment();
    this.#stream.pauseRequest();
  }

  onUpstreamDrained(): void {
    if (!this.#requestPaused) return;
    this.#requestPaused = false;
    this.#cluster!.stats.upstreamDrained.increment();
    this.#stream.resumeRequest();
  }

  #onRequestEnd(): void {
    this.#requestEnded = true;
    const { timers, turn } = this.#stream.dataPath;
    this.#requestEndedMs = turn.nowMs;
    if (this.#timeouts.totalMs > 0) timers.arm(this, this.#timeouts.totalMs, this.#requestEndedMs);
    if (this.#attempt?.sender !== undefined) this.#attempt.armPerTryTimeout(this.#timeouts.perTryMs);
  }

  onConnected(attempt: UpstreamAttempt, sender: RequestSender, connection: UpstreamConnection): void {
    const stream = this.#stream;
    stream.info.connectedUpstream(connection, sender.bytes, stream.dataPath.turn.nowMs);
    // The time for a connection has a limit of its own (connect_timeout).
    if (this.#requestEnded) attempt.armPerTryTimeout(this.#timeouts.perTryMs);
    const idleTimeoutMs = this.#action.retryPolicy?.perTryIdleTimeoutMs ?? 0;
    if (idleTimeoutMs > 0) attempt.armIdleTimeout(idleTimeoutMs);
    const kept = this.#kept?.all;
    const isComplete = this.#requestEnded && this.#trailers === undefined;
    if (kept === undefined) {
      sender.sendRequestHead(stream.request, isComplete && this.#bodyBytes === 0);
      if (isComplete && this.#bodyBytes > 0) throw new Error("a body that was not kept cannot be sent again");
    } else {
      sender.sendRequestHead(stream.request, false);
      for (const [index, chunk] of kept.entries())
        sender.sendRequestData(chunk, isComplete && index === kept.length - 1);
      if (this.#retry === undefined) this.#kept = this.#kept?.release();
    }
    if (this.#trailers !== undefined) sender.sendRequestTrailers(this.#trailers);
    if (this.#requestPaused && attempt === this.#attempt && !sender.isOverHighWatermark()) this.onUpstreamDrained();
  }

  onAnswered(): void {
    if (!this.#abandoned) this.#stream.info.keepTryBytes();
  }

  onInformational(status: number, headers: HeaderMap): void {
    // 100 is our own affair with the client; the others it may want to see (RFC 9110 §15.2).
    if (status !== 100 && status !== 101) this.#stream.sendInformational(status, headers);
  }

  onResponseHead(attempt: UpstreamAttempt, head: ResponseHead, endStream: boolean): void {
    const stream = this.#stream;
    const { info, dataPath } = stream;
    info.heardUpstream("head", endStream, dataPath.turn.nowMs);
    const decision = this.#retry?.onResponse(head, attempt.isStaleAnswer(head) && isIdempotent(stream.request.method));
    if (this.#repeats(attempt, decision)) {
      stream.endTry(answeredTry(head.status));
      attempt.cancelForRetry();
      return;
    }
    if (this.#requestEnded) {
      const serviceTimeMs = Math.max(0, dataPath.turn.nowMs - this.#requestEndedMs);
      info.upstreamServiceTimeMs = serviceTimeMs;
      if (!this.#config.suppressEnvoyHeaders) {
        head.headers.set("x-envoy-upstream-service-time", String(Math.floor(serviceTimeMs)));
      }
    }
    if (this.#action.includeAttemptCountInResponse) {
      head.headers.set("x-envoy-attempt-count", String(this.#attemptCount));
    }
    if (!this.#action.responseIsUntouched) this.#action.finalizeResponse(head, info);
    info.responseCodeDetails = "via_upstream";
    if (stream.request.upgrade !== undefined && isTunnelStart(stream.request.method, head)) {
      this.#isUpgraded = !this.#isTunnel;
      stream.acceptUpgrade();
    }
    // From here on nothing can be tried again.
    this.#kept = this.#kept?.release();
    this.#retry = undefined;
    stream.sendResponseHead(head, endStream);
  }

  onResponseData(attempt: UpstreamAttempt, chunk: Buffer, endStream: boolean): void {
    const stream = this.#stream;
    stream.info.heardUpstream("body", endStream, stream.dataPath.turn.nowMs);
    if (endStream && this.#isUpgraded && !this.#requestEnded) {
      // No message frames its end: the upstream closed on a client that had not finished (Envoy's flag for it).
      stream.info.responseFlags |= responseFlags.UC.bit;
      stream.info.responseCodeDetails = "upstream_reset_after_response_started{connection_termination}";
    }
    stream.sendResponseData(chunk, endStream);
    if (!endStream && !this.#abandoned && stream.isOverHighWatermark()) {
      if (!this.#responsePaused) this.#cluster!.stats.upstreamPausedReading.increment();
      this.#responsePaused = true;
      attempt.sender!.pauseResponse();
    }
  }

  onResponseTrailers(trailers: HeaderMap): void {
    this.#stream.info.upstreamResponseEndedMs = this.#stream.dataPath.turn.nowMs;
    this.#stream.sendResponseTrailers(trailers);
  }

  onDownstreamDrained(): void {
    if (!this.#responsePaused) return;
    this.#responsePaused = false;
    this.#cluster!.stats.upstreamResumedReading.increment();
    this.#attempt?.sender?.resumeResponse();
  }

  onGrpcCutOff(): void {
    this.#config.stats.cutOff.increment();
  }

  /** `detail` are the transport's own words; `responded`: a response head had come. */
  onReset(attempt: UpstreamAttempt, reason: StreamResetReason, detail: string, responded: boolean): void {
    const stream = this.#stream;
    if (detail !== "") stream.info.upstreamTransportFailureReason = detail;
    if (responded) {
      stream.resetStream(flagOfReset[reason], `upstream_reset_after_response_started{${reason}}`);
      return;
    }
    // What is not idempotent may have begun, or the application meant what it said (RFC 9110 §9.2.2).
    const decision =
      attempt.isStaleEnd(reason) && isIdempotent(stream.request.method)
        ? this.#retry?.onReset("remote_refused_stream_reset", false)
        : this.#retry?.onReset(reason, attempt.sender !== undefined);
    const isRetried = this.#repeats(attempt, decision);
    stream.endTry(resetTry(reason, isRetried));
    if (isRetried) return;
    answerInPlace(stream, this.#cluster!, resetBeforeResponse(reason, detail, this.#attemptCount > 1), attempt.host);
  }

  /** A try has taken too long as a whole, or gone without a sign for too long. */
  onPerTryTimeout(attempt: UpstreamAttempt, details: string): void {
    const stream = this.#stream;
    countTimedOutTry(this.#cluster!, details);
    attempt.cancelForTimeout();
    if (stream.responseStarted) {
      stream.resetStream("UT", details);
      return;
    }
    this.#repeatOrAnswer(attempt, timedOut(details));
  }

  onMaxDuration(attempt: UpstreamAttempt): void {
    attempt.cancel();
    // With the response's head it has been forgotten.
    this.#repeatOrAnswer(attempt, lastedTooLong(this.#requestEnded));
  }

  #repeatOrAnswer(attempt: UpstreamAttempt, reply: LocalReply): void {
    const isRetried = this.#repeats(attempt, this.#retry?.onReset("local_reset", true));
    this.#stream.endTry(timedOutTry(isRetried));
    if (!isRetried) answerInPlace(this.#stream, this.#cluster!, reply, attempt.host);
  }

  /** The whole request has taken too long. */
  onTimeout(): void {
    this.#cluster!.stats.upstreamRequestTimeouts.increment();
    this.#attempt?.cancelForTimeout();
    answerInPlace(this.#stream, this.#cluster!, timedOut("response_timeout"), this.#attempt?.host);
  }

  canSendAgain(): boolean {
    return !this.#abandoned && (this.#bodyBytes === 0 || this.#kept !== undefined);
  }

  /** True: another try follows. Otherwise the flags tell of the limit that stood against it, if one did. */
  #repeats(attempt: UpstreamAttempt, decision: RetryDecision | undefined): boolean {
    const { info } = this.#stream;
    if (decision === "limit-exceeded") info.responseFlags |= responseFlags.URX.bit;
    else if (decision === "overflow") info.responseFlags |= responseFlags.UO.bit;
    if (decision !== "retry") return false;
    // A body that is not complete or no longer kept cannot be sent a second time.
    const canRepeat = this.canSendAgain();
    if (canRepeat) this.#scheduleRetry(attempt);
    else this.#retry!.release();
    return canRepeat;
  }

  #scheduleRetry(attempt: UpstreamAttempt): void {
    const { dataPath } = this.#stream;
    (this.#triedHosts ??= []).push(attempt.host);
    this.#attempt = undefined;
    this.#backOffTimer ??= new CallbackTimer(() => {
      this.#followCluster();
      this.#try();
    });
    const delayMs = this.#retry!.nextBackOffMs();
    dataPath.timers.arm(this.#backOffTimer, delayMs, dataPath.turn.nowMs);
    dataPath.routerLog.debug("retrying", { attempt: this.#attemptCount, delayMs });
  }

  /** The stream has ended: nothing goes on in its name. */
  abandon(): void {
    this.#abandoned = true;
    const { info, dataPath } = this.#stream;
    if (this.#requestEnded && info.responseCodeDetails === "via_upstream")
      this.#attempt?.countTime(Math.max(0, dataPath.turn.nowMs - this.#requestEndedMs));
    dataPath.timers.disarm(this);
    if (this.#backOffTimer !== undefined) dataPath.timers.disarm(this.#backOffTimer);
    this.#retry?.release();
    this.#kept = this.#kept?.release();
    this.#attempt?.cancel();
  }
}
