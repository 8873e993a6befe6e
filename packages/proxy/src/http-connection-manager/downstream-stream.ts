// One request and its response: takes the request from the codec, lets filters run over it, sends the answer back
// through them, and tells observers what happens (Envoy: `ConnectionManagerImpl::ActiveStream`).
import type { Counter, Logger } from "@tulle/telemetry";
import type { HttpProtocolError, RequestReceiver, ResponseSender, StreamResetReason } from "../codec/stream-codec.ts";
import { admitRequest, admitUpgrade, overloaded, type Refusal } from "./admit-request.ts";
import { downstreamReset } from "./downstream-reset.ts";
import { findRoute } from "./find-route.ts";
import type { LocalReply } from "../http/filter.ts";
import { HeaderMap } from "../http/header-map.ts";
import { prepareLocalReply } from "./local-reply.ts";
import { noRequest, type RequestHead, type ResponseHead } from "../http/message.ts";
import { reasonPhrase } from "../http/reason-phrase.ts";
import { misdirected } from "./misdirected.ts";
import { mutateRequestHeaders, stripHostPort } from "./request-headers.ts";
import { type ResponseFlag, responseFlags } from "../http/response-flags.ts";
import { mutateResponseHeaders } from "./response-headers.ts";
import { StreamInfo } from "../http/stream-info.ts";
import type { RouteMatch } from "../route/route-table.ts";
import type { HttpConnectionManagerConfig } from "./http-connection-manager-config.ts";
import type { DataPath } from "../worker/data-path.ts";
import { giveUpWhenSilent } from "./ended-websocket.ts";
import { FilterRunner, type FilteredStream } from "./filter-runner.ts";
import type { HttpConnection } from "./http-connection.ts";
import { logRequest, logResponse } from "./stream-debug-log.ts";
import { lastedTooLong, takeStreamDuration } from "./stream-duration.ts";
import type { TryEnd } from "./stream-observer.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";

/**
 * What of the response has left: `none` yet; `started`: its head has; `ended`: all of it, or the stream was cut off.
 * The stream ends with its response: what a client still sends of its request afterwards is the codec's to throw away.
 */
type ResponseState = "none" | "started" | "ended";

/** Until its head has come, and of a connection error, which has none. */
const noHead: RequestHead = { ...noRequest, scheme: "http" };

export class DownstreamStream implements FilteredStream, RequestReceiver {
  readonly #connection: HttpConnection;
  readonly #config: HttpConnectionManagerConfig;
  readonly #sender: ResponseSender;
  readonly dataPath: DataPath;
  readonly info: StreamInfo;
  request: RequestHead = noHead;
  routeMatch: RouteMatch | undefined = undefined;
  slots: Map<object, unknown> | undefined = undefined;
  terminalState: unknown = undefined;
  readonly #filters: FilterRunner;

  #responseState: ResponseState = "none";
  #requestEnded = false;
  #isEndTold = false;
  /** Of a response that a filter has stopped. */
  #heldHead: ResponseHead | undefined = undefined;
  #lastActivityMs: number;
  #idleTimeoutMs: number;
  #requestTimer: CallbackTimer | undefined = undefined;
  #durationTimer: CallbackTimer | undefined = undefined;

  constructor(connection: HttpConnection, sender: ResponseSender) {
    const { config, dataPath } = connection;
    this.#connection = connection;
    this.#config = config;
    this.#sender = sender;
    this.dataPath = dataPath;
    this.#filters = new FilterRunner(this, config.filterChain);
    const nowMs = dataPath.turn.nowMs;
    this.#lastActivityMs = nowMs;
    this.#idleTimeoutMs = config.streamIdleTimeoutMs;
    const { localAddress, remoteAddress, serverName, listener, tls } = connection.info;
    this.info = new StreamInfo(dataPath.clock.wallAtMs(nowMs), nowMs, localAddress, remoteAddress, serverName);
    this.info.listener = listener;
    this.info.downstreamBytes = sender.bytes;
    if (tls !== undefined) {
      this.info.downstreamTls = tls;
      this.info.downstreamPeerCertificate = tls.peer;
    }
    for (const observer of config.observers.start) observer.onStart(this.info, dataPath);
  }

  get log(): Logger {
    return this.dataPath.filterLog;
  }

  get bufferLimitBytes(): number {
    return this.#connection.bufferLimitBytes;
  }

  get isOver(): boolean {
    return this.#responseState === "ended";
  }

  get responseStarted(): boolean {
    return this.#responseState !== "none";
  }

  onRequestHead(head: RequestHead, endStream: boolean): void {
    const config = this.#config;
    this.request = head;
    this.info.request = head;
    this.#requestEnded = endStream;
    if (endStream) this.info.requestEndedMs = this.dataPath.turn.nowMs;
    if (this.dataPath.httpLog.debugEnabled)
      logRequest(this.dataPath.httpLog, this.#connection.info.id, head, endStream, config.redactedNames);
    if (config.requestTimeoutMs > 0 && !endStream) this.#armRequestTimer(config.requestTimeoutMs);
    const refusal = this.#refusalOf(head);
    if (refusal !== undefined) {
      if (refusal.endsStream) this.#sender.endWithResponse();
      this.sendLocalReply(refusal);
      return;
    }
    stripHostPort(head, this.#connection.info.localPort, config);
    const { info, scheme, clientCert } = this.#connection;
    mutateRequestHeaders(head, this.info, info.remoteIp, scheme, config, clientCert);
    this.clearRouteCache();
    for (const observer of config.observers.route) observer.onRoute(this.info);
    if (this.#idleTimeoutMs > 0) this.#connection.watchIdle(this, this.#idleTimeoutMs);
    this.#armDurationTimer();
    if (head.upgrade !== undefined && !admitUpgrade(head.upgrade, this.routeMatch, this.info, config)) {
      this.sendLocalReply({ status: 403, body: "", details: "upgrade_failed" });
      return;
    }
    this.#filters.requestHead(endStream);
  }

  #refusalOf(head: RequestHead): Refusal | undefined {
    const { overload, random } = this.dataPath;
    if (overload.refusesRequest(random)) {
      this.#config.stats.downstreamRequestsOverloadClose.increment();
      return overloaded;
    }
    // Over HTTP/1.1 a connection is for the host that it was made for.
    const isElsewhere = head.protocol === "HTTP/2" && this.#connection.isMisdirected(head.authority);
    return isElsewhere ? misdirected : admitRequest(head, this.#config);
  }

  clearRouteCache(): void {
    const match = findRoute(this.#config.routeTable.current, this.request, this.info, this.dataPath);
    this.routeMatch = match;
    const action = match?.action;
    const isForwarded = action?.type === "forward";
    // Logs tell where a request would have led, whatever becomes of it.
    this.info.cluster = isForwarded ? action.clusterSlot.current : undefined;
    if (isForwarded && action.idleTimeoutMs !== undefined) this.#idleTimeoutMs = action.idleTimeoutMs;
  }

  continueRequest(): void {
    if (!this.isOver) this.dataPath.turn.run(() => this.#filters.continueRequest());
  }

  beginTry(): void {
    for (const observer of this.#config.observers.try) observer.onTry(this.info);
  }

  endTry(end: TryEnd): void {
    for (const observer of this.#config.observers.tryEnd) observer.onTryEnd(this.info, end);
  }

  onRequestData(chunk: Buffer, endStream: boolean): void {
    this.info.bytesReceived += chunk.length;
    this.#lastActivityMs = this.dataPath.turn.nowMs;
    if (endStream) this.#endRequest();
    if (this.isOver) return;
    this.#filters.requestData(chunk, endStream);
  }

  get waitingBody(): readonly Buffer[] {
    return this.#filters.waitingBody;
  }

  get waitingBytes(): number {
    return this.#filters.waitingBytes;
  }

  raiseWaitingLimit(bytes: number): void {
    this.#filters.raiseWaitingLimit(bytes);
  }

  onRequestTrailers(trailers: HeaderMap): void {
    this.#endRequest();
    if (!this.isOver) this.#filters.requestTrailers(trailers);
  }

  #endRequest(): void {
    this.#requestEnded = true;
    this.info.requestEndedMs = this.dataPath.turn.nowMs;
    if (this.#requestTimer !== undefined) this.dataPath.timers.disarm(this.#requestTimer);
    if (this.request.upgrade !== "websocket" || this.isOver) return;
    const giveUp = (): void => {
      this.onDownstreamReset("connection_termination");
      this.#sender.resetStream("local_reset");
    };
    this.#requestTimer = giveUpWhenSilent(this.dataPath, () => this.#lastActivityMs, giveUp);
  }

  onDownstreamReset(reason: StreamResetReason): void {
    if (this.isOver) return;
    this.#connection.onStreamCut(reason);
    const { flag, details } = downstreamReset(reason);
    this.info.responseFlags |= responseFlags[flag].bit;
    this.info.responseCodeDetails = details;
    this.#end(false);
    this.onResponseWritten();
  }

  onRequestError(error: HttpProtocolError): void {
    if (this.isOver) return;
    this.#config.stats.downstreamProtocolErrors.increment();
    this.info.responseFlags |= responseFlags.DPE.bit;
    this.#replyToError(error);
  }

  /** Answers bytes that were no request. */
  onConnectionError(error: HttpProtocolError): void {
    this.info.connectionProtocol = this.#connection.protocol;
    this.#config.stats.downstreamProtocolErrors.increment();
    if (error.status === 408) this.#config.stats.downstreamRequestsHeaderTimeout.increment();
    else this.info.responseFlags |= responseFlags.DPE.bit;
    this.#replyToError(error);
  }

  #replyToError(error: HttpProtocolError): void {
    const body = error.status === 408 ? "request header timeout" : reasonPhrase(error.status);
    this.sendLocalReply({ status: error.status, body, details: error.details });
  }

  onDownstreamDrained(): void {
    this.#filters.downstreamDrained();
  }

  sendLocalReply(reply: LocalReply): void {
    if (this.isOver) return;
    if (this.#responseState === "started") {
      this.resetStream(reply.flag, reply.details);
      return;
    }
    if (reply.flag !== undefined) this.info.responseFlags |= responseFlags[reply.flag].bit;
    this.info.responseCodeDetails = reply.details;
    const { head, body } = prepareLocalReply(reply, this.#config.rewriteLocalReply, this.info);
    this.#filters.dropRequest();
    const isHeadOnly = body.length === 0 || this.request.method === "HEAD";
    this.sendResponseHead(head, isHeadOnly);
    if (!isHeadOnly) this.sendResponseData(body, true);
  }

  sendInformational(status: number, headers: HeaderMap): void {
    if (this.#responseState === "none") this.#sender.sendInformational(status, headers);
  }

  acceptUpgrade(): void {
    this.#sender.upgradeToTunnel();
  }

  sendResponseHead(response: ResponseHead, endStream: boolean): void {
    if (this.#filters.responseHead(response, endStream)) this.#sendFilteredHead(response, endStream);
    else if (this.#filters.holdsResponse) this.#heldHead = response;
  }

  endResponseWithHead(): void {
    const response = this.#heldHead;
    this.#heldHead = undefined;
    if (response !== undefined && this.#filters.continueResponseHead(response)) this.#sendFilteredHead(response, true);
  }

  #sendFilteredHead(response: ResponseHead, endStream: boolean): void {
    const { info } = this;
    const config = this.#config;
    mutateResponseHeaders(response, this.request, config, this.dataPath.clock);
    if (!this.#requestEnded) config.stats.downstreamResponsesBeforeRequestEnd.increment();
    this.#responseState = "started";
    this.#lastActivityMs = this.dataPath.turn.nowMs;
    info.responseStartedMs = this.#lastActivityMs;
    info.response = response;
    info.responseCode = response.status;
    for (const observer of config.observers.response) observer.onResponse(info, response);
    if (!this.#connection.isDraining && this.dataPath.overload.endsConnection(this.dataPath.random)) {
      config.stats.downstreamConnectionsOverloadDisableKeepalive.increment();
      this.#connection.endWithNextAnswer();
    }
    if (this.dataPath.httpLog.debugEnabled)
      logResponse(this.dataPath.httpLog, this.#connection.info.id, info, endStream);
    if (endStream) this.#end();
    this.#sender.sendResponseHead(response, endStream);
    if (endStream) this.onResponseWritten();
  }

  sendResponseData(chunk: Buffer, endStream: boolean): void {
    const isHeld = this.#filters.holdsResponse;
    if (this.#responseState !== "started" && !isHeld) return;
    this.#lastActivityMs = this.dataPath.turn.nowMs;
    const passed = this.#filters.responseData(chunk, endStream);
    if (!isHeld) this.#sendFilteredData(passed, endStream);
  }

  #sendFilteredData(chunk: Buffer, endStream: boolean): void {
    // A HEAD request's answer has no body on the wire, whatever stood in for it.
    if (this.request.method !== "HEAD") this.info.bytesSent += chunk.length;
    if (endStream) this.#end();
    this.#sender.sendResponseData(chunk, endStream);
    if (endStream) this.onResponseWritten();
  }

  sendResponseTrailers(trailers: HeaderMap): void {
    const isHeld = this.#filters.holdsResponse;
    if (this.#responseState !== "started" && !isHeld) return;
    this.info.responseTrailers = trailers;
    const last = this.#filters.responseTrailers(trailers);
    if (isHeld) return;
    if (last !== undefined) {
      this.#sendFilteredData(last, true);
      return;
    }
    this.#end();
    this.#sender.sendResponseTrailers(trailers);
    this.onResponseWritten();
  }

  resetStream(flag: ResponseFlag | undefined, details: string): void {
    if (this.isOver) return;
    if (flag !== undefined) this.info.responseFlags |= responseFlags[flag].bit;
    this.info.responseCodeDetails = details;
    this.#config.stats.downstreamRequestsLocalReset.increment();
    this.#end(false);
    this.#sender.resetStream("local_reset");
    this.onResponseWritten();
  }

  isOverHighWatermark(): boolean {
    return this.#sender.isOverHighWatermark();
  }

  pauseRequest(): void {
    this.#config.stats.downstreamPausedReading.increment();
    this.#sender.pauseRequest();
  }

  resumeRequest(): void {
    this.#config.stats.downstreamResumedReading.increment();
    this.#sender.resumeRequest();
  }

  /** Milliseconds until the stream will have been idle for too long, at the earliest; 0 or less = it has been. */
  idleLeftMs(nowMs: number): number {
    return this.#lastActivityMs + this.#idleTimeoutMs - nowMs;
  }

  /** Envoy: stream_idle_timeout. */
  onIdleTimeout(): void {
    const counter = this.#config.stats.downstreamRequestsIdleTimeout;
    this.#timeOut(counter, { body: "stream timeout", flag: "SI", details: "stream_idle_timeout" });
  }

  /** Envoy: request_timeout. */
  #armRequestTimer(timeoutMs: number): void {
    const counter = this.#config.stats.downstreamRequestsTimeout;
    this.#requestTimer = new CallbackTimer(() =>
      this.#timeOut(counter, { body: "request timeout", details: "request_overall_timeout" }),
    );
    this.dataPath.timers.arm(this.#requestTimer, timeoutMs, this.#lastActivityMs);
  }

  /** Envoy: max_stream_duration. */
  #armDurationTimer(): void {
    const durationMs = takeStreamDuration(this.request, this.routeMatch?.action, this.#config.maxStreamDurationMs);
    if (durationMs === undefined) return;
    const end = (): void => this.#timeOut(this.#config.stats.downstreamRequestsMaxDuration, lastedTooLong);
    if (durationMs === 0) return end();
    this.#durationTimer = new CallbackTimer(end);
    this.dataPath.timers.arm(this.#durationTimer, durationMs, this.#lastActivityMs);
  }

  #timeOut(counter: Counter, reply: Omit<LocalReply, "status">): void {
    counter.increment();
    this.#sender.endWithResponse();
    this.sendLocalReply({ ...reply, status: this.#requestEnded ? 504 : 408 });
  }

  #end(isWhole = true): void {
    this.#responseState = "ended";
    const { dataPath, info } = this;
    this.#connection.unwatchIdle(this);
    if (this.#requestTimer !== undefined) dataPath.timers.disarm(this.#requestTimer);
    if (this.#durationTimer !== undefined) dataPath.timers.disarm(this.#durationTimer);
    const { nowMs } = dataPath.turn;
    if (isWhole) info.responseEndedMs = nowMs;
    if (!isWhole || !this.#requestEnded) this.#config.stats.downstreamRequestsRemoteReset.increment();
    info.durationMs = nowMs - info.startMonotonicMs;
    this.#filters.complete();
  }

  // What it took on the wire is known now. HTTP/1.1 says so before it turns to the next request.
  onResponseWritten(): void {
    if (this.#isEndTold || !this.isOver) return;
    this.#isEndTold = true;
    for (const observer of this.#config.observers.end) observer.onEnd(this.info);
  }
}
