// WebSockets by `ws`, over HTTP/1.1 (RFC 6455) and over a stream of HTTP/2 (RFC 8441): a client, and an application.
import { createServer } from "node:http";
import http2 from "node:http2";
import type { Duplex } from "node:stream";
import { once } from "node:events";
import { type ClientOptions, WebSocket, WebSocketServer } from "ws";

export type HttpVersion = "HTTP/1.1" | "HTTP/2";

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
  /** Gives up the connection beneath at once. */
  readonly cut: () => void;
}

export interface Destination {
  readonly host: string;
  readonly port: number;
  readonly authority: string;
  readonly path: string;
}

export function dial(version: HttpVersion, destination: Destination): Promise<Dialled> {
  return version === "HTTP/2" ? dialStream(destination) : dialUpgrade(destination);
}

function dialUpgrade({ host, port, authority, path }: Destination): Promise<Dialled> {
  const socket = new WebSocket(`ws://${host}:${port}${path}`, ["chat"], {
    headers: { host: authority },
    perMessageDeflate: false,
    maxPayload: maxPayloadBytes,
  });
  const cut = (): void => socket.terminate();
  const { promise, resolve, reject } = Promise.withResolvers<Dialled>();
  socket.once("open", () => resolve({ socket, status: 101, subprotocol: socket.protocol, cut }));
  socket.once("unexpected-response", (request, response) => {
    resolve({ socket: undefined, status: response.statusCode ?? 0, subprotocol: "", cut });
    request.destroy();
  });
  socket.once("error", reject);
  return promise;
}

async function dialStream({ host, port, authority, path }: Destination): Promise<Dialled> {
  const session = http2.connect(`http://${host}:${port}`);
  session.on("error", () => undefined);
  await once(session, "remoteSettings");
  const stream = session.request(
    {
      ":method": "CONNECT",
      ":protocol": "websocket",
      ":scheme": "http",
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
  const [head] = (await once(stream, "response")) as [http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader];
  const status = head[":status"] ?? 0;
  if (status !== 200) {
    cut();
    return { socket: undefined, status, subprotocol: "", cut };
  }
  return { socket: over(stream, "client"), status, subprotocol: String(head["sec-websocket-protocol"]), cut };
}

/**
 * Sends back what it gets, closes with 4001 at the word `close`, drops the connection at `drop`, and refuses the path
 * `/refused` with 403.
 */
export async function startWebSocketApplication(version: HttpVersion, host: string, port: number): Promise<Disposable> {
  const serve = (socket: WebSocket, drop: () => void): void => {
    socket.on("message", (data, isBinary) => {
      const text = isBinary ? "" : (data as Buffer).toString();
      if (text === "close") socket.close(4001, "asked to");
      else if (text === "drop") drop();
      else socket.send(data, { binary: isBinary });
    });
    socket.on("error", () => undefined);
  };
  if (version === "HTTP/1.1") {
    const server = createServer((_request, response) => void response.writeHead(426).end());
    const sockets = new WebSocketServer({ server, verifyClient, maxPayload: maxPayloadBytes });
    sockets.on("connection", (socket) => serve(socket, () => socket.terminate()));
    server.listen(port, host);
    await once(server, "listening");
    return {
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
    if (headers[":protocol"] !== "websocket" || headers[":path"] === "/refused") {
      stream.respond({ ":status": headers[":protocol"] === "websocket" ? 403 : 426 }, { endStream: true });
      return;
    }
    stream.respond({ ":status": 200, "sec-websocket-protocol": "chat" });
    serve(over(stream, "server"), () => stream.close(http2.constants.NGHTTP2_CANCEL));
  });
  server.listen(port, host);
  await once(server, "listening");
  return {
    [Symbol.dispose]: () => {
      for (const session of sessions) session.destroy();
      server.close();
    },
  };
}

function verifyClient(
  { req }: { readonly req: { readonly url?: string | undefined } },
  tell: (accepted: boolean, code?: number) => void,
): void {
  tell(req.url !== "/refused", 403);
}
