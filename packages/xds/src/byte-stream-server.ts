// A gRPC server of the ADS method that hands over streams of opaque messages: what the ADS server and the agent's relay
// are built on. Bytes are decoded by them, where a broken message ends its stream with a reason.
import { chmodSync, lstatSync, unlinkSync } from "node:fs";
import type { Socket } from "node:net";
import { GuardedListener } from "@tulle/listening";
import type { Server, ServerDuplexStream, ServerOptions } from "@grpc/grpc-js";
import type { AdsAddress, Refusal, StreamOpening } from "./ads-server-api.ts";
import { loadGrpc } from "./load-grpc.ts";
import { UnaryCalls } from "./answer-unary.ts";
import { OpenStreams } from "./open-streams.ts";
import { TlsListener, type TlsPeer } from "./tls-listener.ts";
import type { PeerIdentity, ServerTls, ServerTlsCredentials } from "./transport-security.ts";
import type { GrpcStatusName, UnaryHandlers } from "./unary-calls.ts";
import { type XdsService, xdsMethods } from "./methods.ts";

export interface ServerByteStream {
  /** The peer's address as gRPC gives it. */
  readonly peer: string;
  readonly service: XdsService;
  /** Of a verified client, DER, the leaf first; empty when it showed none or the server speaks no TLS. */
  readonly peerCertificates: readonly Uint8Array[];
  readonly peerIdentity: PeerIdentity | undefined;
  /** False when the transport's buffer is full: `onDrain` follows. */
  write(bytes: Uint8Array): boolean;
  fail(status: GrpcStatusName, details: string): void;
}

export interface ServerByteStreamEvents {
  onMessage(bytes: Uint8Array): void;
  onDrain(): void;
  /** Once, however the stream ends. */
  onEnd(reason: string): void;
}

export type OnByteStream = (stream: ServerByteStream) => ServerByteStreamEvents;

export interface ByteStreamServerLimits {
  /** Streams over all connections; one more gets RESOURCE_EXHAUSTED. */
  readonly maxStreams: number;
  /** Of TCP: see `AdsServerLimits`. */
  readonly maxHandshakes?: number;
  readonly maxUnproven?: number;
  readonly maxRequestBytes: number;
  readonly maxResponseBytes: number;
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
}

export interface RunningByteStreamServer {
  /** The address that was bound, with the port taken. */
  readonly address: AdsAddress;
  /**
   * Replaces what is shown to new connections; streams that stand go on. Only for a server with TLS.
   * @throws if key and certificate do not fit
   */
  setCredentials(credentials: ServerTlsCredentials): void;
  /** Ends all streams and closes the socket. */
  close(): Promise<void>;
}

export interface ByteStreamServerOptions {
  readonly address: AdsAddress;
  readonly limits: ByteStreamServerLimits;
  /** By the variant of xDS that a client speaks; one that is not here is refused. */
  readonly onStream: { readonly sotw: OnByteStream; readonly delta?: OnByteStream };
  /** The services whose streams are taken; `ads` alone unless told. */
  readonly services?: readonly XdsService[];
  /** On a TCP address only. */
  readonly tls?: ServerTls;
  /** Of TCP: whether a connection that was just accepted is closed, before anything is read. */
  readonly refusesConnection?: (socket: Socket) => boolean;
  readonly unaryHandlers?: UnaryHandlers;
  /** See `AdsServerOptions`, as the next. */
  readonly admission?: (opening: StreamOpening) => Refusal | undefined;
  readonly onTurnedAway?: (peer: string, refusal: Refusal) => void;
}

/** A TCP connection without any call is ended after this long: clients keep theirs for streams that live for days. */
const idleConnectionMs = 60_000;
/** Of a connection without TLS, from its begin. */
const firstCallTimeoutMs = 10_000;
/**
 * What HTTP/2 lets a connection open at once: above the limit that is refused with words, for clients that heed
 * neither.
 */
const maxHttp2Streams = 1000;

const notIncremental: Refusal = {
  status: "UNIMPLEMENTED",
  details:
    "the incremental protocol (DELTA_GRPC) is not spoken here: set api_type: GRPC where the client's bootstrap names this server",
};

type BytesCall = ServerDuplexStream<Buffer, Buffer>;

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function method(path: string, isStream: boolean) {
  return {
    path,
    requestStream: isStream,
    responseStream: isStream,
    requestSerialize: asBuffer,
    requestDeserialize: asBuffer,
    responseSerialize: asBuffer,
    responseDeserialize: asBuffer,
  };
}

/** Starts to serve; rejects if the address cannot be bound. */
export async function serveByteStreams(options: ByteStreamServerOptions): Promise<RunningByteStreamServer> {
  const grpc = await loadGrpc();
  const { unaryHandlers = {}, tls } = options;
  const { sotw: onSotw, delta: onDelta } = options.onStream;
  const open = new OpenStreams<BytesCall>(options);
  const server = new grpc.Server(serverOptions(options));
  const insecure = grpc.ServerCredentials.createInsecure();
  const injector = server.createConnectionInjector(insecure);
  const listener = tls === undefined ? undefined : tlsListener(tls, options, injector);
  const plain = tls === undefined && "port" in options.address ? plainListener(options, injector) : undefined;
  const peerOf = (call: { getPeer(): string }): TlsPeer => {
    plain?.admit(call.getPeer());
    return listener?.peer(call.getPeer()) ?? { certificates: [], identity: undefined };
  };
  const fail = (call: BytesCall, code: number, details: string): void => void call.emit("error", { code, details });
  const turnAway = (call: BytesCall, { status, details }: Refusal): void => {
    fail(call, grpc.status[status], details);
    options.onTurnedAway?.(call.getPeer(), { status, details });
  };
  const stream = (call: BytesCall, service: XdsService, onStream: OnByteStream): void => {
    const peer = call.getPeer();
    const { certificates, identity } = peerOf(call);
    const refusal = open.refusal({ peer, peerIdentity: identity });
    if (refusal !== undefined) return turnAway(call, refusal);
    const forget = open.add(call, { peer, peerIdentity: identity });
    // Tells the client that the stream stands, before there is anything to send.
    call.sendMetadata(new grpc.Metadata());
    const events = onStream({
      peer,
      service,
      peerCertificates: certificates,
      peerIdentity: identity,
      write: (bytes) => call.write(asBuffer(bytes)),
      fail: (status, details) => fail(call, grpc.status[status], details),
    });
    listen(call, events, forget);
  };
  const unary = new UnaryCalls({ grpc, peerOf, fail, onTurnedAway: options.onTurnedAway });
  for (const service of options.services ?? ["ads"]) {
    const { sotw, delta } = xdsMethods[service];
    server.addService(
      { sotw: method(sotw, true), delta: method(delta, true) },
      {
        sotw: (call: BytesCall) => stream(call, service, onSotw),
        delta: (call: BytesCall) =>
          onDelta === undefined ? turnAway(call, notIncremental) : stream(call, service, onDelta),
      },
    );
  }
  for (const [path, handler] of Object.entries(unaryHandlers)) {
    // Served as a stream, on which the two look the same: a stream's handler hears of a call before its message is
    // there.
    server.addService({ call: method(path, true) }, { call: (call: BytesCall) => unary.take(call, handler) });
  }
  const onTcp = listener ?? plain;
  const address =
    onTcp === undefined ? await bind(server, insecure, options.address) : await bindListener(onTcp, options.address);
  return {
    address,
    setCredentials: (credentials) => {
      if (listener === undefined) throw new Error("the server speaks no TLS");
      listener.setCredentials(credentials);
    },
    close: async () => {
      for (const call of open.calls) fail(call, grpc.status.UNAVAILABLE, "the server stops");
      await Promise.all([shutDown(server), onTcp?.close()]);
      if ("path" in address) removeSocket(address.path);
    },
  };
}

function serverOptions({ address, limits }: ByteStreamServerOptions): ServerOptions {
  return {
    "grpc.max_receive_message_length": limits.maxRequestBytes,
    "grpc.max_send_message_length": limits.maxResponseBytes,
    "grpc.keepalive_time_ms": limits.keepAliveIntervalMs,
    "grpc.keepalive_timeout_ms": limits.keepAliveTimeoutMs,
    "grpc.keepalive_permit_without_calls": 1,
    "grpc.max_concurrent_streams": maxHttp2Streams,
    ...("path" in address ? {} : { "grpc.max_connection_idle_ms": idleConnectionMs }),
  };
}

async function shutDown(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.tryShutdown(() => resolve());
  // Streams of clients that do not answer would hold a graceful shutdown for ever.
  server.forceShutdown();
  await promise;
}

type Injector = ReturnType<Server["createConnectionInjector"]>;

function tlsListener(tls: ServerTls, options: ByteStreamServerOptions, injector: Injector): TlsListener {
  const { maxUnproven = Infinity } = options.limits;
  return new TlsListener(tls, { ...tcpOptions(options, injector), maxUnproven });
}

/** Its newcomers have called nothing yet. */
function plainListener(options: ByteStreamServerOptions, injector: Injector): GuardedListener {
  const { maxHandshakes, ...others } = tcpOptions(options, injector);
  return new GuardedListener({ ...others, maxNewcomers: maxHandshakes, newcomerLifeMs: firstCallTimeoutMs });
}

function tcpOptions({ limits, refusesConnection = () => false }: ByteStreamServerOptions, injector: Injector) {
  return {
    // Twice, because a client renews its certificate beside its stream.
    maxConnections: 2 * limits.maxStreams,
    maxHandshakes: limits.maxHandshakes ?? Infinity,
    refuses: refusesConnection,
    accept: (socket: Socket) => injector.injectConnection(socket),
  };
}

async function bindListener(listener: TlsListener | GuardedListener, address: AdsAddress): Promise<AdsAddress> {
  if ("path" in address) throw new Error("TLS is served on TCP addresses only");
  const { host, port, descriptor } = address;
  return { host, port: await listener.listen(host, port, descriptor) };
}

function listen(call: BytesCall, events: ServerByteStreamEvents, forget: () => boolean): void {
  const ended = (reason: string): void => {
    if (forget()) events.onEnd(reason);
  };
  call.on("data", (bytes: Buffer) => events.onMessage(bytes));
  call.on("drain", () => events.onDrain());
  call.on("end", () => {
    ended("the client ended the stream");
    call.end();
  });
  call.on("cancelled", () => ended("the stream was cut"));
  call.on("error", (error: Partial<Error> & { readonly details?: string }) => {
    ended(error.details ?? error.message ?? "the stream failed");
  });
  call.on("close", () => ended("the stream was closed"));
}

async function bind(
  server: Server,
  credentials: Parameters<Server["bindAsync"]>[1],
  address: AdsAddress,
): Promise<AdsAddress> {
  if ("path" in address) removeSocket(address.path);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const host = "path" in address ? `unix:${address.path}` : joinHostPort(address.host, address.port);
  server.bindAsync(host, credentials, (error, port) => (error === null ? resolve(port) : reject(error)));
  const port = await promise;
  if ("path" in address) {
    // Whoever may connect may read a pod's configuration, and keys where SDS is served.
    chmodSync(address.path, 0o600);
    return address;
  }
  return { host: address.host, port };
}

function joinHostPort(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** A socket file outlives a process that was killed; anything else at that path is left alone, and binding fails. */
function removeSocket(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true) unlinkSync(path);
}
