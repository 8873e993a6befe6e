// WebSockets by `ws`, over HTTP/1.1 (RFC 6455) and over a stream of HTTP/2 (RFC 8441): a client, and an application.
import assert from "node:assert/strict";
import http, { createServer } from "node:http";
import http2 from "node:http2";
import type { Duplex } from "node:stream";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { type ClientOptions, WebSocket, WebSocketServer } from "ws";
import type { HttpVersion } from "../tools/http2-client.ts";
import { inTime } from "../tools/processes.ts";

/** Beyond it a message is refused; the tests' own are smaller. */
const maxPayloadBytes = 16 * 1024 * 1024;

/** What `ws` has for sockets that somebody else has shaken hands on. */
interface SocketTaker {
  _isServer: boolean;
  setSocket(socket: Duplex, head: Buffer, options: { readonly maxPayload: number }): void;
}

function over(stream: Duplex, role: "client" | "server"): WebSocket {
  const socket = new WebSocket(null as unknown as string, undefined, {
    autoPong: true,
    closeTimeout: 30_000,
  } as ClientOptions);
  const taker = socket as unknown as SocketTaker;
  taker._isServer = role === "server";
  taker.setSocket(stream, Buffer.alloc(0), { maxPayload: maxPayloadBytes });
  return socket;
}

export interface Dialled {
  /** Undefined where the handshake was refused. */
  readonly socket: WebSocket | undefined;
  readonly status: number;
  readonly subprotocol: string;
  /** Of a refusal. */
  readonly body: string;
  readonly headers: http.IncomingHttpHeaders;
  /** Gives up the connection beneath at once. */
  readonly cut: () => void;
}

export interface Destination {
  readonly host: string;
  readonly port: number;
  readonly authority: string;
  readonly path: string;
  /** Who answers is not looked at. */
  readonly isTls?: boolean;
  /** Of an extended CONNECT, in the place of `websocket`. */
  readonly protocol?: string;
}

export function dial(version: HttpVersion, destination: Destination): Promise<Dialled> {
  return version === "HTTP/2" ? dialStream(destination) : dialUpgrade(destination);
}

function dialUpgrade({ host, port, authority, path, isTls = false }: Destination): Promise<Dialled> {
  const socket = new WebSocket(`${isTls ? "wss" : "ws"}://${host}:${port}${path}`, ["chat"], {
    headers: { host: authority },
    ...(isTls ? { servername: authority, rejectUnauthorized: false } : {}),
    perMessageDeflate: false,
    maxPayload: maxPayloadBytes,
  });
  const cut = (): void => socket.terminate();
  const { promise, resolve, reject } = Promise.withResolvers<Dialled>();
  socket.once("open", () => resolve({ socket, status: 101, subprotocol: socket.protocol, body: "", headers: {}, cut }));
  socket.once("unexpected-response", async (request, response) => {
    const { statusCode: status = 0, headers } = response;
    resolve({ socket: undefined, status, subprotocol: "", body: await text(response), headers, cut });
    request.destroy();
  });
  socket.once("error", reject);
  return promise;
}

async function dialStream({
  host,
  port,
  authority,
  path,
  isTls = false,
  protocol = "websocket",
}: Destination): Promise<Dialled> {
  const scheme = isTls ? "https" : "http";
  const tls = isTls ? { servername: authority, rejectUnauthorized: false } : {};
  const session = http2.connect(`${scheme}://${host}:${port}`, tls);
  session.on("error", () => undefined);
  await once(session, "remoteSettings");
  const stream = session.request(
    {
      ":method": "CONNECT",
      ":protocol": protocol,
      ":scheme": scheme,
      ":path": path,
      ":authority": authority,
      "sec-websocket-version": "13",
      "sec-websocket-protocol": "chat",
    },
    { endStream: false },
  );
  stream.on("error", () => undefined);
  stream.once("close", () => session.close());
  const cut = (): void => session.destroy();
  const [headers] = (await once(stream, "response")) as [http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader];
  const status = headers[":status"] ?? 0;
  if (status !== 200) {
    const body = await text(stream);
    cut();
    return { socket: undefined, status, subprotocol: "", body, headers, cut };
  }
  const subprotocol = String(headers["sec-websocket-protocol"]);
  return { socket: over(stream, "client"), status, subprotocol, body: "", headers, cut };
}

export interface WebSocketApplication extends Disposable {
  /** The code that each WebSocket ended with, by its path. */
  readonly ends: ReadonlyMap<string, number>;
}

/** Of `/refused`. */
export const refusal = { status: 403, body: "not at this hour\n", reason: "closed" } as const;

/**
 * Sends back what it gets, closes with 4001 at the word `close`, drops the connection at `drop`, and refuses paths that
 * end in `/refused`. Other requests are told 426, and nothing where the path ends in `/hang`.
 */
export async function startWebSocketApplication(
  version: HttpVersion,
  host: string,
  port: number,
): Promise<WebSocketApplication> {
  const ends = new Map<string, number>();
  const serve = (socket: WebSocket, path: string, drop: () => void): void => {
    socket.on("message", (data, isBinary) => {
      const message = isBinary ? "" : (data as Buffer).toString();
      if (message === "close") socket.close(4001, "asked to");
      else if (message === "drop") drop();
      else socket.send(data, { binary: isBinary });
    });
    socket.on("error", () => undefined);
    socket.on("close", (code) => ends.set(path, code));
  };
  if (version === "HTTP/1.1") {
    const server = createServer(({ url = "" }, response) => {
      if (!url.endsWith("/hang")) response.writeHead(426).end();
    });
    const sockets = new WebSocketServer({ server, verifyClient, maxPayload: maxPayloadBytes });
    sockets.on("connection", (socket, { url = "" }) => serve(socket, url, () => socket.terminate()));
    server.listen(port, host);
    await once(server, "listening");
    return {
      ends,
      [Symbol.dispose]: () => {
        for (const socket of sockets.clients) socket.terminate();
        server.closeAllConnections();
        server.close();
      },
    };
  }
  const server = http2.createServer({ settings: { enableConnectProtocol: true } });
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  server.on("stream", (stream: http2.ServerHttp2Stream, headers) => {
    stream.on("error", () => undefined);
    const path = headers[":path"] ?? "";
    if (path.endsWith("/hang")) return;
    if (headers[":protocol"] !== "websocket") {
      stream.respond({ ":status": 426 }, { endStream: true });
      return;
    }
    if (path.endsWith("/refused")) {
      stream.respond({ ":status": refusal.status, "x-reason": refusal.reason });
      stream.end(refusal.body);
      return;
    }
    stream.respond({ ":status": 200, "sec-websocket-protocol": "chat" });
    serve(over(stream, "server"), path, () => stream.close(http2.constants.NGHTTP2_CANCEL));
  });
  server.listen(port, host);
  await once(server, "listening");
  return {
    ends,
    [Symbol.dispose]: () => {
      for (const session of sessions) session.destroy();
      server.close();
    },
  };
}

function verifyClient(
  { req }: { readonly req: { readonly url?: string | undefined } },
  tell: (accepted: boolean, code?: number, body?: string, headers?: http.OutgoingHttpHeaders) => void,
): void {
  const isRefused = req.url?.endsWith("/refused") === true;
  tell(!isRefused, refusal.status, refusal.body, { "x-reason": refusal.reason });
}

/** Text, a megabyte, and a ping, there and back. */
export async function exchange(socket: WebSocket): Promise<void> {
  assert.equal(await answerTo(socket, "héllo"), "héllo");
  const large = Buffer.alloc(1_000_000, "0123456789");
  assert.ok(large.equals((await answerTo(socket, large)) as Buffer));
  const pong = once(socket, "pong");
  socket.ping("beat");
  assert.deepEqual((await inTime(pong, "a pong")).map(String), ["beat"]);
}

export async function answerTo(socket: WebSocket, message: string | Buffer): Promise<string | Buffer> {
  const answer = once(socket, "message") as Promise<[Buffer, boolean]>;
  socket.send(message);
  const [data, isBinary] = await inTime(answer, "an answer");
  return isBinary ? data : data.toString();
}

/** Code and reason, as the client hears them. */
export async function endOf(socket: WebSocket, end: () => void): Promise<readonly unknown[]> {
  socket.on("error", () => undefined);
  const closed = once(socket, "close") as Promise<[number, Buffer]>;
  end();
  const [code, reason] = await inTime(closed, "the end of the WebSocket");
  return [code, reason.toString()];
}
