// A bidirectional gRPC stream of opaque messages over HTTP/2, at the first host of a cluster that answers: how
// configuration and secrets come. Hosts, addresses, TLS and the judgement of the peer are the cluster's own, as for any
// request.
import type { Socket } from "node:net";
import type { ByteStream, ByteStreamEvents } from "@tulle/xds";
import type { Cluster, Host } from "../cluster/cluster.ts";
import type { DataPath } from "../worker/data-path.ts";
import type { Slot } from "../runtime/slot.ts";
import { tlsErrorText } from "../tls/transport-failure.ts";
import { GrpcCall, type GrpcEnd } from "./grpc-call.ts";
import type { GrpcTarget } from "../http/grpc-target.ts";
import type { Http2KeepAlive } from "../codec/http2/http2-options.ts";
import { countConnection } from "./cluster-load.ts";
import { connectSocket, transportErrorText } from "./connect-socket.ts";
import type { TlsConnectOptions } from "./connect-tls.ts";

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

export interface GrpcStreamEvents extends ByteStreamEvents {
  /** `status`: the server's, with which it has ended the stream; undefined: it broke off, or did not come about. */
  onEnd(reason: string, status?: string): void;
  /** What was written has left after `isOverHighWatermark` was true. */
  onDrained?(): void;
}

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
): (events: GrpcStreamEvents) => GrpcStream {
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
  readonly events: GrpcStreamEvents;
  readonly memory: FailedHost;
}

/**
 * States: asking the hosts in turn → open, once one of them has sent its settings → ended, by the peer or by `close()`.
 */
export class GrpcStream implements ByteStream {
  readonly #options: StreamOptions;
  readonly #failures: string[] = [];
  #call: GrpcCall | undefined = undefined;
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
    this.#call?.write(bytes);
  }

  /** More waits for the server than it should. */
  isOverHighWatermark(): boolean {
    return this.#call?.isOverHighWatermark() ?? false;
  }

  pause(): void {
    this.#isPaused = true;
    this.#call?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#call?.resume();
  }

  /** Says that nothing more comes; the server has the last word. */
  end(): void {
    this.#call?.end();
  }

  close(): void {
    this.#isClosed = true;
    this.#call?.close();
  }

  #end(reason: string, status?: string): void {
    if (this.#isClosed) return;
    this.close();
    this.#options.events.onEnd(reason, status);
  }

  #ask(cluster: Cluster, host: Host, others: readonly Host[]): void {
    const { dataPath, events, limits, memory, path, target } = this.#options;
    const { authority, metadata, maxMessageBytes = limits.maxMessageBytes } = target;
    const isTls = cluster.transportOf?.(host).kind === "tls";
    const pings = host.address.type === "ip" ? limits.keepAlive : undefined;
    let isOpen = false;
    this.#call = new GrpcCall(
      { scheme: isTls ? "https" : "http", authority, path, metadata },
      {
        onOpen: () => {
          isOpen = true;
          memory.host = host;
          events.onOpen();
        },
        onMessage: (message) => {
          memory.host = undefined;
          events.onMessage(message);
        },
        onDrained: () => events.onDrained?.(),
        onEnd: (end) => {
          if (isOpen) return this.#end(reasonOf(end, host), end.kind === "status" ? end.status : undefined);
          cluster.stats.upstreamConnectFailures.increment();
          this.#failures.push(`${host.addressText}: ${wordsOf(end)}`);
          memory.host = host;
          const [next, ...rest] = others;
          if (next !== undefined) this.#ask(cluster, next, rest);
          else this.#end(`cannot connect to the cluster '${cluster.name}': ${this.#failures.join("; ")}`);
        },
      },
      {
        connectTimeoutMs: cluster.connectTimeoutMs,
        maxMessageBytes,
        http2: { ...cluster.http2, keepAlive: cluster.http2.keepAlive ?? pings },
        http2Stats: cluster.http2Stats,
      },
      dataPath,
      (onRead) => openSocket(host, cluster, dataPath, onRead),
    );
    if (this.#isPaused) this.#call.pause();
  }
}

function openSocket(host: Host, cluster: Cluster, dataPath: DataPath, onRead: (chunk: Buffer) => void): Socket {
  const socket = connectSocket(host, cluster, dataPath, onRead, tlsOptions);
  cluster.stats.upstreamConnectionsTotal.increment();
  countConnection(cluster, 1);
  socket.once("close", () => countConnection(cluster, -1));
  // It is the listeners that keep the process alive.
  return socket.unref();
}

const tlsOptions: TlsConnectOptions = { serverName: undefined, verifiesServerName: false, defaultProtocols: ["h2"] };

function reasonOf(end: GrpcEnd, host: Host): string {
  if (end.kind === "failure") return `${host.addressText}: ${wordsOf(end)}`;
  const words = end.message === "" ? "" : `: ${end.message}`;
  return `the server ended the stream with the gRPC status ${end.status}${words}`;
}

/** Envoy's words where it has some for a connection that did not come about. */
function wordsOf(end: GrpcEnd): string {
  if (end.kind === "status") return `the gRPC status ${end.status}`;
  const { error, words } = end;
  if (error === undefined) return words;
  const tls = tlsErrorText(error);
  if (tls !== undefined) return tls;
  return error.syscall === undefined ? words : transportErrorText(error).replaceAll("_", " ");
}

/** All but the first, from its place on; those of a lower priority after all of a higher one. */
function inTurn(hosts: readonly Host[], first: Host): readonly Host[] {
  const at = hosts.indexOf(first);
  const others = [...hosts.slice(at + 1), ...hosts.slice(0, Math.max(0, at))];
  return others.sort((one, other) => one.priority - other.priority);
}
