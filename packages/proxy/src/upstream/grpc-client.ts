// One call of a gRPC service at a host of a cluster: the proxy's own calls to authorizers (Envoy: `Grpc::AsyncClient`).
// It goes by the pools and tries of any request.
import type { Cluster, Host } from "../cluster/cluster.ts";
import type { RequestSender, StreamResetReason } from "../codec/stream-codec.ts";
import { setGrpcTimeout } from "../http/grpc-timeout.ts";
import type { GrpcTarget } from "../http/grpc-target.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { ResponseHead } from "../http/message.ts";
import type { Slot } from "../runtime/slot.ts";
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import type { AsyncCall } from "./async-call.ts";
import { framed, prefixBytes } from "./grpc-framing.ts";
import { type AttemptOwner, UpstreamAttempt } from "./upstream-attempt.ts";

export interface GrpcRequest {
  /** `/package.Service/Method` */
  readonly path: string;
  /** The message, encoded. */
  readonly message: Uint8Array;
}

export interface GrpcOptions {
  /** 0 = none. */
  readonly timeoutMs: number;
  readonly maxResponseBytes: number;
}

/** `reason` is for the log. */
export type GrpcResult =
  | { readonly ok: true; readonly message: Buffer }
  | { readonly ok: false; readonly reason: string };

/** The result comes in a later turn, never within this call. */
export function callGrpc(
  cluster: Slot<Cluster>,
  target: GrpcTarget,
  request: GrpcRequest,
  options: GrpcOptions,
  dataPath: DataPath,
  onResult: (result: GrpcResult) => void,
): AsyncCall {
  const call = new GrpcCall(cluster, target, request, options, dataPath, onResult);
  queueMicrotask(() => dataPath.turn.run(() => call.start()));
  return call;
}

class GrpcCall implements AsyncCall, AttemptOwner {
  readonly isGrpc = true;
  readonly isInternal = true;
  readonly #cluster: Slot<Cluster>;
  readonly #target: GrpcTarget;
  readonly #request: GrpcRequest;
  readonly #options: GrpcOptions;
  readonly #dataPath: DataPath;
  readonly #onResult: (result: GrpcResult) => void;
  readonly #timer = new CallbackTimer(() => this.#onTimeout());
  #attempt: UpstreamAttempt | undefined = undefined;
  #scheme: "http" | "https" = "http";
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isDone = false;
  #startedMs = 0;

  constructor(
    cluster: Slot<Cluster>,
    target: GrpcTarget,
    request: GrpcRequest,
    options: GrpcOptions,
    dataPath: DataPath,
    onResult: (result: GrpcResult) => void,
  ) {
    this.#cluster = cluster;
    this.#target = target;
    this.#request = request;
    this.#options = options;
    this.#dataPath = dataPath;
    this.#onResult = onResult;
  }

  start(): void {
    if (this.#isDone) return;
    const cluster = this.#cluster.current;
    if (cluster === undefined) return this.#end({ ok: false, reason: "cluster_not_found" });
    const host = cluster.loadBalancer.chooseHost(undefined);
    if (host === undefined) {
      cluster.stats.noHealthyHosts.increment();
      return this.#end({ ok: false, reason: "no_healthy_upstream" });
    }
    this.#startedMs = this.#dataPath.turn.nowMs;
    const { timeoutMs } = this.#options;
    if (timeoutMs > 0) this.#dataPath.timers.arm(this.#timer, timeoutMs, this.#dataPath.turn.nowMs);
    this.#ask(cluster, host);
  }

  cancel(): void {
    if (this.#isDone) return;
    this.#close();
    this.#attempt?.cancel();
  }

  #ask(cluster: Cluster, host: Host): void {
    this.#scheme = cluster.transportOf?.(host).kind === "tls" ? "https" : "http";
    this.#attempt = new UpstreamAttempt(this, cluster, host, this.#dataPath);
    this.#attempt.start(false, this.#target.authority, "HTTP/2");
  }

  // AttemptOwner

  onConnected(_attempt: UpstreamAttempt, sender: RequestSender): void {
    const { authority, metadata } = this.#target;
    const { path, message } = this.#request;
    const { timeoutMs } = this.#options;
    const headers = new HeaderMap(["te", "trailers", "content-type", "application/grpc"]);
    if (timeoutMs > 0) setGrpcTimeout(headers, timeoutMs);
    for (const [name, value] of metadata) headers.append(name, value);
    const head = { method: "POST", scheme: this.#scheme, authority, path, protocol: "HTTP/2", headers } as const;
    sender.sendRequestHead(head, false);
    sender.sendRequestData(framed(message), true);
  }

  canSendAgain(): boolean {
    return true;
  }

  onInformational(): void {
    // They say nothing of the call.
  }

  onResponseHead(_attempt: UpstreamAttempt, head: ResponseHead, endStream: boolean): void {
    if (head.status !== 200) this.#giveUp(`status ${head.status}`);
    // An answer without a body says how it ended in its head.
    else if (endStream) this.#onStatus(head.headers);
  }

  onResponseData(_attempt: UpstreamAttempt, chunk: Buffer, endStream: boolean): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#options.maxResponseBytes) return this.#giveUp("the answer is too large");
    // Chunks are views on the worker's read buffer.
    this.#chunks.push(Buffer.from(chunk));
    if (endStream) this.#fail("the stream ended without a status");
  }

  onResponseTrailers(trailers: HeaderMap): void {
    this.#onStatus(trailers);
  }

  onReset(_attempt: UpstreamAttempt, reason: StreamResetReason, detail: string): void {
    this.#fail(detail === "" ? reason : detail);
  }

  onPerTryTimeout(): void {
    // None is armed: the call has a time of its own.
  }

  onMaxDuration(): void {
    this.#giveUp("timeout");
  }

  onUpstreamDrained(): void {
    // Messages are small.
  }

  #onTimeout(): void {
    this.#attempt?.cancelForTimeout();
    this.#fail("timeout");
  }

  #onStatus(fields: HeaderMap): void {
    this.#attempt!.countTime(this.#dataPath.turn.nowMs - this.#startedMs);
    const status = fields.get("grpc-status");
    if (status !== "0") return this.#fail(`gRPC status ${String(status)}`);
    const all = Buffer.concat(this.#chunks);
    const isWhole = all.length >= prefixBytes && all[0] === 0 && all.readUInt32BE(1) === all.length - prefixBytes;
    if (isWhole) this.#end({ ok: true, message: all.subarray(prefixBytes) });
    else this.#fail("not one message");
  }

  /** The host may go on with its answer, which nobody wants. */
  #giveUp(reason: string): void {
    this.#attempt?.cancel();
    this.#fail(reason);
  }

  #fail(reason: string): void {
    this.#end({ ok: false, reason });
  }

  #end(result: GrpcResult): void {
    if (this.#isDone) return;
    this.#close();
    this.#onResult(result);
  }

  #close(): void {
    this.#isDone = true;
    this.#dataPath.timers.disarm(this.#timer);
  }
}
