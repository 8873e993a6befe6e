// What the soak test calls behind its sidecars: everything comes back as it was sent. HTTP/1.1 with WebSocket, HTTP/2
// and gRPC, each at a port of its own, which may be ended and begun again.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createHttp2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { grpcApplication } from "../parity/grpc-application.ts";

export const ports = { http1: 8001, http2: 8002, grpc: 8003 } as const;
export type Protocol = keyof typeof ports;

export class EchoApplications implements AsyncDisposable {
  readonly #address: string;
  readonly #running = new Map<Protocol, AsyncDisposable>();

  constructor(address: string) {
    this.#address = address;
  }

  async start(protocol: Protocol): Promise<void> {
    this.#running.set(protocol, await starts[protocol](this.#address));
  }

  /** Ends it with all its connections, as a killed process would, and begins it again. */
  async restart(protocol: Protocol): Promise<void> {
    await this.#running.get(protocol)![Symbol.asyncDispose]();
    await this.start(protocol);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of this.#running.values()) await each[Symbol.asyncDispose]();
  }
}

const starts: Readonly<Record<Protocol, (address: string) => Promise<AsyncDisposable>>> = {
  http1: startHttp1,
  http2: startHttp2,
  grpc: (address) => grpcApplication(`${address}:${ports.grpc}`),
};

async function startHttp1(address: string): Promise<AsyncDisposable> {
  const server = createServer((request, response) => {
    request.once("error", () => response.destroy());
    request.pipe(response);
  });
  server.keepAliveTimeout = 0;
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  // What follows the handshake is bytes to the mesh: they come back, whatever frames they are.
  server.on("upgrade", ({ headers }, socket: Socket, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    // RFC 6455, section 4.2.2.
    const key = `${headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = createHash("sha1").update(key).digest("base64");
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n" +
        `sec-websocket-accept: ${accept}\r\n\r\n`,
    );
    socket.write(head);
    socket.pipe(socket);
  });
  await once(server.listen(ports.http1, address), "listening");
  return {
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await once(server.close(), "close");
    },
  };
}

async function startHttp2(address: string): Promise<AsyncDisposable> {
  const server = createHttp2Server();
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => stream.destroy());
    stream.respond({ ":status": 200 });
    stream.pipe(stream);
  });
  await once(server.listen(ports.http2, address), "listening");
  return {
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      for (const session of sessions) session.destroy();
      await closed;
    },
  };
}
