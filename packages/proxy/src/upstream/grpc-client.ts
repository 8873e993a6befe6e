// One call of a gRPC service over HTTP/2, at a host of a cluster: the proxy's own calls to authorizers (Envoy:
// `Grpc::AsyncClient`). What the data path itself speaks to hosts is another matter; these are few and small, so that
// Node's HTTP/2 is good enough.
import { countRequest } from "./cluster-load.ts";
import http2 from "node:http2";
import type { Cluster, Host } from "../cluster/cluster.ts";
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import type { Slot } from "../runtime/slot.ts";
import type { AsyncCall } from "./async-call.ts";
import { framed, prefixBytes } from "./grpc-framing.ts";
import { metadataHeaders, type GrpcTarget } from "../http/grpc-target.ts";
import { openHttp2Session } from "./http2-session.ts";

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

class GrpcCall implements AsyncCall {
  readonly #cluster: Slot<Cluster>;
  readonly #target: GrpcTarget;
  readonly #request: GrpcRequest;
  readonly #options: GrpcOptions;
  readonly #dataPath: DataPath;
  readonly #onResult: (result: GrpcResult) => void;
  readonly #timer = new CallbackTimer(() => this.#end({ ok: false, reason: "timeout" }));
  #stream: http2.ClientHttp2Stream | undefined = undefined;
  #release: (() => void) | undefined = undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isDone = false;

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
    const { stats, load, circuitBreakers } = cluster;
    const host = cluster.loadBalancer.chooseHost(undefined);
    if (host === undefined) {
      stats.noHealthyHosts.increment();
      return this.#end({ ok: false, reason: "no_healthy_upstream" });
    }
    if (load.requests >= circuitBreakers.maxRequests) {
      stats.upstreamRequestActiveOverflow.increment();
      return this.#end({ ok: false, reason: "overflow" });
    }
    const { timeoutMs } = this.#options;
    if (timeoutMs > 0) this.#dataPath.timers.arm(this.#timer, timeoutMs, this.#dataPath.turn.nowMs);
    this.#send(cluster, host);
  }

  cancel(): void {
    if (this.#isDone) return;
    this.#close();
  }

  #send(cluster: Cluster, host: Host): void {
    const { authority, metadata } = this.#target;
    const { path, message } = this.#request;
    const { timeoutMs } = this.#options;
    cluster.stats.upstreamRequestsTotal.increment();
    countRequest(cluster, 1);
    host.stats.requestsTotal += 1;
    host.activeRequests += 1;
    this.#release = () => {
      countRequest(cluster, -1);
      host.activeRequests -= 1;
    };
    const headers: http2.OutgoingHttpHeaders = {
      ":method": "POST",
      ":path": path,
      ":scheme": cluster.transportOf?.(host).kind === "tls" ? "https" : "http",
      ":authority": authority,
      te: "trailers",
      "content-type": "application/grpc",
      ...(timeoutMs > 0 && { "grpc-timeout": `${timeoutMs}m` }),
      ...metadataHeaders(metadata),
    };
    const stream = sessionTo(host, cluster, this.#dataPath).request(headers);
    this.#stream = stream;
    stream.on("response", (answer) => this.#onHead(answer));
    stream.on("trailers", (trailers) => this.#onStatus(trailers));
    stream.on("data", (chunk: Buffer) => this.#onData(chunk));
    stream.on("error", (error) => this.#fail(error.message));
    stream.on("close", () => this.#fail("the stream ended without a status"));
    stream.end(framed(message));
  }

  #onHead(head: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader): void {
    if (head[":status"] !== 200) this.#fail(`status ${head[":status"] ?? "missing"}`);
    // An answer without a body says how it ended in its head.
    else if (head["grpc-status"] !== undefined) this.#onStatus(head);
  }

  #onStatus(fields: http2.IncomingHttpHeaders): void {
    const status = fields["grpc-status"];
    if (status !== "0") return this.#fail(`gRPC status ${String(status)}`);
    const all = Buffer.concat(this.#chunks);
    const isWhole = all.length >= prefixBytes && all[0] === 0 && all.readUInt32BE(1) === all.length - prefixBytes;
    if (!isWhole) return this.#fail("not one message");
    this.#dataPath.turn.run(() => this.#end({ ok: true, message: all.subarray(prefixBytes) }));
  }

  #onData(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#options.maxResponseBytes) return this.#fail("the answer is too large");
    this.#chunks.push(chunk);
  }

  #fail(reason: string): void {
    if (!this.#isDone) this.#dataPath.turn.run(() => this.#end({ ok: false, reason }));
  }

  #end(result: GrpcResult): void {
    if (this.#isDone) return;
    this.#close();
    this.#onResult(result);
  }

  #close(): void {
    this.#isDone = true;
    this.#dataPath.timers.disarm(this.#timer);
    this.#release?.();
    const stream = this.#stream;
    if (stream !== undefined && !stream.closed) stream.close(http2.constants.NGHTTP2_CANCEL);
  }
}

interface Session {
  readonly session: http2.ClientHttp2Session;
  /** What the host's connections are made with: another one asks for another session. */
  readonly material: unknown;
}

/** One for each host. A host that leaves takes its session with it. */
const sessions = new WeakMap<Host, Session>();

function sessionTo(host: Host, cluster: Cluster, dataPath: DataPath): http2.ClientHttp2Session {
  const transport = cluster.transportOf?.(host);
  const material = transport?.kind === "tls" ? transport.context.material : undefined;
  const kept = sessions.get(host);
  const isUsable = kept !== undefined && !kept.session.closed && !kept.session.destroyed;
  if (isUsable && kept.material === material) return kept.session;
  if (isUsable) kept.session.close();
  const session = openHttp2Session(host, cluster, dataPath);
  if (cluster.idleTimeoutMs > 0) session.setTimeout(cluster.idleTimeoutMs, () => session.close());
  sessions.set(host, { session, material });
  return session;
}

/** Call it when a host has left its cluster: calls under way are finished. */
export function closeGrpcSession(host: Host): void {
  sessions.get(host)?.session.close();
  sessions.delete(host);
}
