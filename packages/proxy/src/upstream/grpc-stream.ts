// A bidirectional gRPC stream of opaque messages over HTTP/2, at the first host of a cluster that answers: how
// configuration and secrets come. Hosts, addresses, TLS and the judgement of the peer are the cluster's own, as for any
// request.
import type http2 from "node:http2";
import type { ByteStream, ByteStreamEvents, OpenByteStream } from "@tulle/xds";
import type { Cluster, Host } from "../cluster/cluster.ts";
import type { DataPath } from "../worker/data-path.ts";
import type { Slot } from "../runtime/slot.ts";
import { tlsErrorText } from "../tls/transport-failure.ts";
import { transportErrorText } from "./connect-socket.ts";
import { MessageReader, framed } from "./grpc-framing.ts";
import { type GrpcTarget, metadataHeaders } from "../http/grpc-target.ts";
import type { Http2KeepAlive } from "../codec/http2/http2-options.ts";
import { openHttp2Session } from "./http2-session.ts";

export interface GrpcStreamLimits {
  /** Of a message that comes; the target may set a lower one. */
  readonly maxMessageBytes: number;
  /** Over TCP, where the cluster says nothing of pings. */
  readonly keepAlive: Http2KeepAlive;
}

const defaultGrpcStreamLimits: GrpcStreamLimits = {
  maxMessageBytes: 64 * 1024 * 1024,
  // gRPC in Go refuses pings below five minutes.
  keepAlive: { intervalMs: 5 * 60_000, jitterPercent: 0, timeoutMs: 60_000 },
};

/** How often the balancer is asked for a host other than the one that failed last. */
const maxHostPicks = 8;

/**
 * `path` is `/package.Service/Method`. Each call of the result is one try: it asks all hosts in turn, beginning with
 * the balancer's choice, and ends when none has answered or the stream has ended. Waiting before the next try is the
 * caller's matter.
 */
export function grpcStreamOpener(
  cluster: Slot<Cluster>,
  target: GrpcTarget,
  path: string,
  dataPath: DataPath,
  limits: GrpcStreamLimits = defaultGrpcStreamLimits,
): OpenByteStream {
  // The host of the last try that brought no message: it is not the first to be asked again.
  const memory: FailedHost = { host: undefined };
  return (events) => {
    const stream = new GrpcStream({ cluster, target, path, dataPath, limits, events, memory });
    queueMicrotask(() => stream.open());
    return stream;
  };
}

interface FailedHost {
  host: Host | undefined;
}

interface StreamOptions {
  readonly cluster: Slot<Cluster>;
  readonly target: GrpcTarget;
  readonly path: string;
  readonly dataPath: DataPath;
  readonly limits: GrpcStreamLimits;
  readonly events: ByteStreamEvents;
  readonly memory: FailedHost;
}

/**
 * States: asking the hosts in turn → open, once one of them has sent its settings → ended, by the peer or by `close()`.
 */
class GrpcStream implements ByteStream {
  readonly #options: StreamOptions;
  readonly #failures: string[] = [];
  #session: http2.ClientHttp2Session | undefined;
  #call: http2.ClientHttp2Stream | undefined;
  #isPaused = false;
  #isClosed = false;

  constructor(options: StreamOptions) {
    this.#options = options;
  }

  open(): void {
    const { cluster: slot, memory } = this.#options;
    if (this.#isClosed) return;
    const cluster = slot.current;
    if (cluster === undefined) return this.#end(`there is no cluster '${slot.name}'`);
    const first = cluster.loadBalancer.chooseHost({ shouldAvoid: (host) => host === memory.host, maxHostPicks });
    if (first === undefined) return this.#end(`the cluster '${cluster.name}' has no host that could be asked`);
    this.#ask(cluster, first, inTurn(cluster.hosts, first));
  }

  write(bytes: Uint8Array): void {
    if (!this.#isClosed) this.#call?.write(framed(bytes));
  }

  pause(): void {
    this.#isPaused = true;
    this.#call?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#call?.resume();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // Not `close()`: it waits for a call that the server has not let begin, and for the end of a peer that may be
    // stopped.
    this.#session?.destroy();
  }

  #end(reason: string): void {
    if (this.#isClosed) return;
    this.close();
    this.#options.events.onEnd(reason);
  }

  #ask(cluster: Cluster, host: Host, others: readonly Host[]): void {
    const { dataPath, limits } = this.#options;
    const pings = host.address.type === "ip" ? limits.keepAlive : undefined;
    const session = openHttp2Session(host, cluster, dataPath, pings);
    this.#session = session;
    let failure: string | undefined;
    let isOpen = false;
    session.on("error", (error) => (failure = wordsOf(error)));
    session.once("remoteSettings", () => {
      if (session.closed || session.destroyed) return;
      isOpen = true;
      if (!this.#isClosed) this.#begin(session, host);
    });
    session.once("close", () => {
      if (this.#isClosed || this.#session !== session) return;
      if (isOpen) return this.#end(`the connection to ${host.addressText} has ended: ${failure ?? "by the server"}`);
      this.#failures.push(`${host.addressText}: ${failure ?? "the server ended the connection"}`);
      this.#options.memory.host = host;
      const [next, ...rest] = others;
      if (next === undefined)
        this.#end(`cannot connect to the cluster '${cluster.name}': ${this.#failures.join("; ")}`);
      else this.#ask(cluster, next, rest);
    });
  }

  #begin(session: http2.ClientHttp2Session, host: Host): void {
    const { target, path, events, limits, memory } = this.#options;
    memory.host = host;
    const call = session.request({
      ":method": "POST",
      ":path": path,
      ":scheme": session.encrypted === true ? "https" : "http",
      ":authority": target.authority,
      te: "trailers",
      "content-type": "application/grpc",
      ...metadataHeaders(target.metadata),
    });
    this.#call = call;
    const reader = new MessageReader(target.maxMessageBytes ?? limits.maxMessageBytes, (message) => {
      memory.host = undefined;
      if (!this.#isClosed) events.onMessage(message);
    });
    call.on("response", (head) => {
      if (head[":status"] !== 200) this.#end(`${host.addressText} answered with the status ${head[":status"] ?? "?"}`);
      else if (head["grpc-status"] !== undefined) this.#end(statusText(head));
    });
    call.on("data", (chunk: Buffer) => {
      const problem = reader.take(chunk);
      if (problem !== undefined) this.#end(`${host.addressText}: ${problem}`);
    });
    call.on("trailers", (trailers) => this.#end(statusText(trailers)));
    call.on("error", (error) => this.#end(`${host.addressText}: ${wordsOf(error)}`));
    // A server that ends its side without a status leaves ours open, and so the call: it does not close by itself.
    call.on("end", () => this.#end("the server ended the stream"));
    call.on("close", () => this.#end("the server ended the stream"));
    if (this.#isPaused) call.pause();
    events.onOpen();
  }
}

/** Envoy's words where it has some for a connection that did not come about. */
function wordsOf(error: NodeJS.ErrnoException): string {
  const tls = tlsErrorText(error);
  if (tls !== undefined) return tls;
  return error.syscall === undefined ? error.message : transportErrorText(error).replaceAll("_", " ");
}

/** All but the first, from its place on; those of a lower priority after all of a higher one. */
function inTurn(hosts: readonly Host[], first: Host): readonly Host[] {
  const at = hosts.indexOf(first);
  const others = [...hosts.slice(at + 1), ...hosts.slice(0, Math.max(0, at))];
  return others.sort((one, other) => one.priority - other.priority);
}

/** What a peer says goes into a log. */
const maxStatusCharacters = 500;

function statusText(fields: http2.IncomingHttpHeaders): string {
  const status = String(fields["grpc-status"] ?? "?");
  const text = String(fields["grpc-message"] ?? "");
  const words = text === "" ? "" : `: ${percentDecoded(text).slice(0, maxStatusCharacters)}`;
  return `the server ended the stream with the gRPC status ${status}${words}`;
}

/** gRPC over HTTP/2, "Status-Message". */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
