// Requests that the proxy sends by itself, through the same clusters, pools and limits as everybody's traffic: token
// endpoints of sign-in, external authorization (Envoy: `Http::AsyncClient`). Bodies are small and whole in both
// directions.
import type { Cluster, Host } from "../cluster/cluster.ts";
import { protocolFor } from "./protocol-for.ts";
import type { RequestSender, StreamResetReason } from "../codec/stream-codec.ts";
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import type { HeaderMap } from "../http/header-map.ts";
import { ownRequestProtocol, type RequestHead, type ResponseHead } from "../http/message.ts";
import type { Slot } from "../runtime/slot.ts";
import type { AsyncCall } from "./async-call.ts";
import { type AttemptOwner, UpstreamAttempt } from "./upstream-attempt.ts";

export interface AsyncRequest {
  readonly method: string;
  readonly scheme: "http" | "https";
  readonly authority: string;
  /** Path and query. */
  readonly path: string;
  /** Without content-length, which the body decides. */
  readonly headers: HeaderMap;
  /** Undefined = a request without a body, and without content-length. */
  readonly body: Buffer | undefined;
}

export interface AsyncResponse {
  readonly status: number;
  readonly headers: HeaderMap;
  readonly body: Buffer;
}

/** Envoy: config.core.v3.RetryPolicy. */
export interface AsyncRetries {
  /** Tries after the first. */
  readonly count: number;
  readonly backOffMs: number;
  readonly onServerError: boolean;
  readonly onReset: boolean;
  readonly onConnectFailure: boolean;
}

export interface AsyncOptions {
  /** For all tries together; 0 = none. */
  readonly timeoutMs: number;
  readonly maxResponseBytes: number;
  readonly retries?: AsyncRetries | undefined;
}

export type AsyncFailure =
  | "cluster_not_found"
  | "no_healthy_upstream"
  | "upstream_response_timeout"
  | "response_too_large"
  | `upstream_reset{${string}}`;

/** `host` is that of the last try; undefined: none was found. */
export type AsyncResult =
  | { readonly ok: true; readonly response: AsyncResponse; readonly host: Host | undefined }
  | { readonly ok: false; readonly failure: AsyncFailure; readonly host: Host | undefined };

/** The result comes in a later turn, never within this call. */
export function sendAsyncRequest(
  cluster: Slot<Cluster>,
  request: AsyncRequest,
  options: AsyncOptions,
  dataPath: DataPath,
  onResult: (result: AsyncResult) => void,
): AsyncCall {
  const call = new AsyncExchange(cluster, request, options, dataPath, onResult);
  queueMicrotask(() => dataPath.turn.run(() => call.start()));
  return call;
}

class AsyncExchange implements AttemptOwner, AsyncCall {
  readonly isGrpc = false;
  readonly isInternal = true;
  readonly #cluster: Slot<Cluster>;
  readonly #request: AsyncRequest;
  readonly #options: AsyncOptions;
  readonly #dataPath: DataPath;
  readonly #onResult: (result: AsyncResult) => void;
  readonly #timer = new CallbackTimer(() => this.#fail("upstream_response_timeout"));
  readonly #backOff = new CallbackTimer(() => this.#try());
  #attempt: UpstreamAttempt | undefined = undefined;
  #host: Host | undefined = undefined;
  #retriesLeft: number;
  #head: ResponseHead | undefined = undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isDone = false;
  #startedMs = 0;

  constructor(
    cluster: Slot<Cluster>,
    request: AsyncRequest,
    options: AsyncOptions,
    dataPath: DataPath,
    onResult: (result: AsyncResult) => void,
  ) {
    this.#cluster = cluster;
    this.#request = request;
    this.#options = options;
    this.#dataPath = dataPath;
    this.#onResult = onResult;
    this.#retriesLeft = options.retries?.count ?? 0;
  }

  start(): void {
    if (this.#isDone) return;
    this.#startedMs = this.#dataPath.turn.nowMs;
    const { timeoutMs } = this.#options;
    if (timeoutMs > 0) this.#dataPath.timers.arm(this.#timer, timeoutMs, this.#dataPath.turn.nowMs);
    this.#try();
  }

  cancel(): void {
    if (this.#isDone) return;
    this.#end();
    this.#attempt?.cancel();
  }

  #try(): void {
    const cluster = this.#cluster.current;
    if (cluster === undefined) return this.#fail("cluster_not_found");
    if (cluster.resolveAuthority === undefined) return this.#tryAt(cluster, cluster.loadBalancer.chooseHost(undefined));
    const onHost = (host: Host | undefined): void => {
      if (!this.#isDone) this.#dataPath.turn.run(() => this.#tryAt(cluster, host));
    };
    cluster.resolveAuthority(this.#request.authority).then(onHost, () => onHost(undefined));
  }

  #tryAt(cluster: Cluster, host: Host | undefined): void {
    if (host === undefined) {
      cluster.stats.noHealthyHosts.increment();
      return this.#fail("no_healthy_upstream");
    }
    this.#host = host;
    this.#attempt = new UpstreamAttempt(this, cluster, host, this.#dataPath);
    this.#attempt.start(false, this.#request.authority, protocolFor(cluster, ownRequestProtocol));
  }

  onConnected(_attempt: UpstreamAttempt, sender: RequestSender): void {
    const { method, scheme, authority, path, headers, body } = this.#request;
    const sent = headers.clone();
    if (body !== undefined) sent.set("content-length", String(body.length));
    const head: RequestHead = { method, scheme, authority, path, protocol: ownRequestProtocol, headers: sent };
    const hasBody = body !== undefined && body.length > 0;
    sender.sendRequestHead(head, !hasBody);
    if (hasBody) sender.sendRequestData(body, true);
  }

  onInformational(): void {
    // 100 and 103 say nothing about the answer.
  }

  onResponseHead(_attempt: UpstreamAttempt, head: ResponseHead, endStream: boolean): void {
    this.#head = head;
    if (endStream) this.#finish();
  }

  onResponseData(_attempt: UpstreamAttempt, chunk: Buffer, endStream: boolean): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#options.maxResponseBytes) {
      this.#attempt?.cancel();
      return this.#fail("response_too_large");
    }
    // Chunks are views on the worker's read buffer.
    if (chunk.length > 0) this.#chunks.push(Buffer.from(chunk));
    if (endStream) this.#finish();
  }

  onResponseTrailers(): void {
    this.#finish();
  }

  onReset(attempt: UpstreamAttempt, reason: StreamResetReason, detail: string): void {
    if (this.#isDone || attempt !== this.#attempt) return;
    const isConnectFailure = /^(remote_connection_failure|local_connection_failure|connection_timeout)$/.test(reason);
    const { retries } = this.#options;
    if (isConnectFailure ? retries?.onConnectFailure : retries?.onReset) {
      if (this.#retry()) return;
    }
    this.#fail(`upstream_reset{${detail === "" ? reason : `${reason}|${detail}`}}`);
  }

  canSendAgain(): boolean {
    return !this.#isDone;
  }

  onPerTryTimeout(): void {
    // There is one time-out for all tries together.
  }

  onMaxDuration(): void {
    this.#fail("upstream_response_timeout");
  }

  onUpstreamDrained(): void {
    // The body was handed over whole.
  }

  #retry(): boolean {
    const { retries } = this.#options;
    if (retries === undefined || this.#retriesLeft === 0) return false;
    const doublings = retries.count - this.#retriesLeft;
    this.#retriesLeft -= 1;
    this.#head = undefined;
    this.#chunks = [];
    this.#bytes = 0;
    const limitMs = Math.min(retries.backOffMs * 2 ** doublings, retries.backOffMs * 10);
    const delayMs = this.#dataPath.random() * limitMs;
    this.#dataPath.timers.arm(this.#backOff, delayMs, this.#dataPath.turn.nowMs);
    return true;
  }

  #finish(): void {
    if (this.#isDone) return;
    const { status, headers } = this.#head!;
    if (status >= 500 && this.#options.retries?.onServerError === true && this.#retry()) return;
    this.#attempt!.countTime(this.#dataPath.turn.nowMs - this.#startedMs);
    this.#end();
    this.#onResult({
      ok: true,
      response: { status, headers, body: Buffer.concat(this.#chunks) },
      host: this.#host,
    });
  }

  #fail(failure: AsyncFailure): void {
    if (this.#isDone) return;
    this.#end();
    this.#attempt?.cancel();
    this.#onResult({ ok: false, failure, host: this.#host });
  }

  #end(): void {
    this.#isDone = true;
    this.#dataPath.timers.disarm(this.#timer);
    this.#dataPath.timers.disarm(this.#backOff);
  }
}
