// A collector of spans, log records, access log entries and metrics behind mutual TLS, which is no good in one way or
// another until it is healed: one table for all that go to it.
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import net, { type AddressInfo, type Socket } from "node:net";
import tls, { type TLSSocket } from "node:tls";
import { frame, emptySettings, settingFrame, uint32 } from "./http2-peer.ts";
import { frameTypes } from "../codec/http2/frame.ts";
import type { IssuedIdentity, IssueOptions } from "./test-authority.ts";

/** Spans and metrics by OTLP over gRPC, records by OTLP over HTTP/1.1, entries by Envoy's access log service. */
export const vias = ["spans", "logs", "entries", "metrics"] as const;
export type Via = (typeof vias)[number];

export interface BadWay {
  readonly certificate?: IssueOptions;
  /** Instead of TLS. */
  readonly onTcp?: (socket: Socket) => void;
  /** Instead of HTTP. */
  readonly onTls?: (socket: TLSSocket) => void;
  /** Instead of an answer. */
  readonly onCall?: (stream: http2.ServerHttp2Stream, via: Via) => void;
  readonly onRequest?: (response: http.ServerResponse) => void;
  /** Nothing but a time-out ends what is sent to it. */
  readonly isSilent?: true;
  /** What the log says; undefined: nothing. */
  readonly reasons: Readonly<Record<Via, RegExp | undefined>>;
}

const hourMs = 3_600_000;
const alike = (reason: RegExp): BadWay["reasons"] => ({
  spans: reason,
  logs: reason,
  entries: reason,
  metrics: reason,
});
const partialSuccess = Buffer.from([0x0a, 3, 0x08, 0xff, 0x7f]);
const large = Buffer.alloc(1024 * 1024);
const largeCount = 64;

/** As fast as it is taken; what comes is read. */
function pour(chunk: Buffer): (socket: TLSSocket) => void {
  return (socket) => {
    socket.resume();
    const more = (): void => {
      while (!socket.destroyed && socket.write(chunk)) continue;
    };
    socket.on("drain", more);
    socket.write(emptySettings);
    more();
  };
}

function answerLarge(into: http2.ServerHttp2Stream | http.ServerResponse): void {
  for (let count = 0; count < largeCount; count += 1) into.write(large);
  into.end();
}

const many = (bytes: Buffer): Buffer => Buffer.concat(Array.from({ length: 500 }, () => bytes));
const grpcHead = { ":status": 200, "content-type": "application/grpc" };

export const badWays: Readonly<Record<string, BadWay>> = {
  "is somebody else": {
    certificate: { uri: "spiffe://cluster.local/ns/observability/sa/other" },
    reasons: alike(/CERTIFICATE_VERIFY_FAILED/),
  },
  "has a certificate of yesterday": {
    certificate: {
      uri: "spiffe://cluster.local/ns/observability/sa/collector",
      notBeforeMs: Date.now() - 48 * hourMs,
      notAfterMs: Date.now() - 24 * hourMs,
    },
    reasons: alike(/CERTIFICATE_VERIFY_FAILED/),
  },
  "accepts and shakes no hands": { onTcp: () => undefined, isSilent: true, reasons: alike(/time|takes nothing/) },
  "says nothing": { onTls: (socket) => socket.resume(), isSilent: true, reasons: alike(/time|takes nothing/) },
  "answers rubbish": {
    onTls: (socket) => {
      socket.resume();
      socket.write("\0\0\0rubbish\r\n\r\n".repeat(1000));
    },
    reasons: alike(/protocol/),
  },
  "resets each call": {
    onCall: (stream) => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR),
    reasons: alike(/reset|termination/),
  },
  "calls each connection off": {
    onTls: (socket) => {
      socket.resume();
      socket.write(emptySettings);
      socket.write(frame(frameTypes.goAway, 0, 0, Buffer.concat([uint32(0), uint32(0)])));
    },
    reasons: alike(/refused|protocol|connection/),
  },
  "closes at each request": {
    onCall: (stream) => stream.session!.destroy(),
    reasons: alike(/ended|connection/),
  },
  "answers 64 MiB": {
    onCall: (stream) => {
      stream.respond(grpcHead);
      stream.write(Buffer.concat([Buffer.from([0]), uint32(largeCount * large.length)]));
      answerLarge(stream);
    },
    onRequest: answerLarge,
    reasons: alike(/large/),
  },
  "rejects what it has taken": {
    onCall: (stream, via) => {
      if (via === "entries") return;
      stream.respond(grpcHead, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end(Buffer.concat([Buffer.from([0]), uint32(partialSuccess.length), partialSuccess]));
    },
    onRequest: (response) => {
      response.writeHead(200, { "content-type": "application/x-protobuf" }).end(partialSuccess);
    },
    reasons: { spans: /rejected 16383/, logs: /rejected 16383/, entries: undefined, metrics: /rejected 16383/ },
  },
  "sends SETTINGS without an end": { onTls: pour(many(settingFrame(3, 100))), reasons: alike(/protocol/) },
  "sends PING without an end": {
    onTls: pour(many(frame(frameTypes.ping, 0, 0, Buffer.alloc(8)))),
    reasons: alike(/protocol/),
  },
};

interface Identities {
  readonly bad: IssuedIdentity;
  readonly good: IssuedIdentity;
  readonly rootPem: string;
}

export class MeshCollector implements AsyncDisposable {
  /** What has come since it is well. */
  readonly taken = new Set<Via>();
  readonly #way: BadWay;
  readonly #identities: Identities;
  readonly #sockets = new Set<Socket>();
  readonly #tcp = net.createServer((socket) => this.#onTcp(socket));
  readonly #tls: tls.Server;
  readonly #http1 = http.createServer((request, response) => this.#onRequest(request, response));
  readonly #http2 = http2.createServer();
  #isWell = false;

  private constructor(way: BadWay, identities: Identities) {
    this.#way = way;
    this.#identities = identities;
    const options = { ...this.#material(identities.bad), requestCert: true, ALPNProtocols: ["h2", "http/1.1"] };
    this.#tls = tls.createServer(options, (socket) => this.#onTls(socket));
    this.#http2.on("stream", (stream: http2.ServerHttp2Stream, { ":path": path }) =>
      this.#onCall(stream, String(path)),
    );
    this.#http2.on("session", (session) => session.on("error", () => undefined));
    this.#http2.on("sessionError", () => undefined);
  }

  static async start(way: BadWay, identities: Identities): Promise<MeshCollector> {
    const collector = new MeshCollector(way, identities);
    collector.#tcp.listen(0, "127.0.0.1");
    await once(collector.#tcp, "listening");
    return collector;
  }

  get port(): number {
    return (this.#tcp.address() as AddressInfo).port;
  }

  /** Connections of the bad time end. */
  heal(): void {
    this.#isWell = true;
    this.#tls.setSecureContext(this.#material(this.#identities.good));
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#tcp.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #material({ chainPem, keyPem }: IssuedIdentity): tls.SecureContextOptions {
    return { cert: chainPem, key: keyPem, ca: this.#identities.rootPem };
  }

  #onTcp(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined).once("close", () => this.#sockets.delete(socket));
    if (!this.#isWell && this.#way.onTcp !== undefined) this.#way.onTcp(socket);
    else this.#tls.emit("connection", socket);
  }

  #onTls(socket: TLSSocket): void {
    socket.on("error", () => undefined);
    if (!this.#isWell && this.#way.onTls !== undefined) this.#way.onTls(socket);
    else (socket.alpnProtocol === "h2" ? this.#http2 : this.#http1).emit("connection", socket);
  }

  #onCall(stream: http2.ServerHttp2Stream, path: string): void {
    const via = path.includes("accesslog") ? "entries" : path.includes("metrics") ? "metrics" : "spans";
    stream.on("error", () => undefined);
    if (!this.#isWell && this.#way.onCall !== undefined) {
      stream.resume();
      return this.#way.onCall(stream, via);
    }
    stream.on("data", () => this.taken.add(via));
    if (via === "entries") return stream.respond(grpcHead);
    stream.respond(grpcHead, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.on("end", () => stream.end(Buffer.alloc(5)));
  }

  #onRequest(request: http.IncomingMessage, response: http.ServerResponse): void {
    request.resume();
    if (this.#isWell) {
      this.taken.add("logs");
      response.end();
    } else if (this.#way.onRequest !== undefined) this.#way.onRequest(response);
    else request.socket.destroy();
  }
}
