// WebSocket upgrades and CONNECT, over HTTP/1.1 and HTTP/2 (RFC 9110 §7.8 and §9.3.6, RFC 8441): a client that sends a
// word through the tunnel and ends when it is back, and a host that sends back what it is sent.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { setImmediate as immediate } from "node:timers/promises";
import http2 from "node:http2";
import net from "node:net";
import type { Duplex } from "node:stream";
import type http from "node:http";
import type { HttpVersion } from "../../../../tests/tools/http2-client.ts";

export interface Tunnel {
  readonly kind: "websocket" | "connect";
  /** Who ends it, and how, once the word is back. */
  readonly end: "client" | "host" | "cut";
}

export interface TunnelRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
}

interface UsedTunnel {
  /** 0: there was no answer. */
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /** When the word was back, milliseconds since 1970; undefined where there was no tunnel. */
  readonly usedMs: number | undefined;
}

/** RFC 6455 §1.3. */
const websocketGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const authority = "main.test";
/** To this word the host ends. */
const lastWord = "bye";

/** Once the proxy has ended it, too. */
export function useTunnel(
  port: number,
  version: HttpVersion,
  tunnel: Tunnel,
  asked: TunnelRequest,
): Promise<UsedTunnel> {
  return version === "HTTP/2" ? overHttp2(port, tunnel, asked) : overHttp1(port, tunnel, asked);
}

async function overHttp1(port: number, { kind, end }: Tunnel, { path, headers }: TunnelRequest): Promise<UsedTunnel> {
  const fields = Object.entries({
    host: authority,
    ...headers,
    ...(kind === "websocket" && {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }),
  }).flatMap(([name, value]) => [value].flat().map((each) => `${name}: ${each}\r\n`));
  const socket = net.connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(`${kind === "connect" ? `CONNECT ${authority}:80` : `GET ${path}`} HTTP/1.1\r\n${fields.join("")}\r\n`);
  const head = await readUntil(socket, /\r\n\r\n/);
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? 0);
  const lines = [...head.matchAll(/^([\w-]+): (.*)\r$/gm)].map(([, name, value]) => [name!.toLowerCase(), value]);
  const isOpen = status === (kind === "connect" ? 200 : 101);
  const usedMs = isOpen ? await exchange(socket, end) : undefined;
  socket.destroy();
  return { status, headers: Object.fromEntries(lines) as UsedTunnel["headers"], usedMs };
}

async function overHttp2(port: number, { kind, end }: Tunnel, { path, headers }: TunnelRequest): Promise<UsedTunnel> {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  session.on("error", () => undefined);
  await once(session, "remoteSettings");
  const target =
    kind === "connect"
      ? { ":method": "CONNECT", ":authority": `${authority}:80` }
      : {
          ":method": "CONNECT",
          ":protocol": "websocket",
          ":scheme": "http",
          ":authority": authority,
          ":path": path,
          "sec-websocket-version": "13",
        };
  const stream = session.request({ ...target, ...headers }, { endStream: false });
  stream.on("error", () => undefined);
  let given: http2.IncomingHttpHeaders = {};
  const { promise: answered, resolve } = Promise.withResolvers<void>();
  stream.once("response", (fields) => {
    given = fields;
    resolve();
  });
  stream.once("close", resolve);
  await answered;
  const status = Number(given[":status"] ?? 0);
  const usedMs = status === 200 ? await exchange(stream, end) : undefined;
  session.destroy();
  return { status, headers: given, usedMs };
}

async function exchange(stream: Duplex, end: Tunnel["end"]): Promise<number> {
  stream.write("word");
  await readUntil(stream, /word/);
  // One that ended with the answer has to show: our spans begin by the millisecond, and what Envoy takes for now is
  // some milliseconds old on a busy machine.
  const usedMs = Date.now() + 10;
  while (Date.now() < usedMs + 10) await immediate();
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  stream.once("close", resolve);
  if (end === "cut") stream.destroy();
  else if (end === "client") stream.end();
  else stream.write(lastWord);
  stream.resume();
  await closed;
  return usedMs;
}

async function readUntil(stream: Duplex, pattern: RegExp): Promise<string> {
  let text = "";
  const { promise, resolve } = Promise.withResolvers<void>();
  const onData = (chunk: Buffer): void => {
    text += chunk.toString("latin1");
    if (pattern.test(text)) resolve();
  };
  stream.on("data", onData).once("close", resolve);
  await promise;
  stream.off("data", onData).off("close", resolve);
  return text;
}

/** `/status/404` refuses it, `/cut` gives the connection up. */
export function serveTunnel({ method, url = "", headers }: http.IncomingMessage, socket: Duplex): void {
  socket.on("error", () => undefined);
  const [, word, argument] = url.split("/");
  if (word === "cut") return void socket.destroy();
  if (word === "status") return void socket.end(`HTTP/1.1 ${argument} No\r\ncontent-length: 0\r\n\r\n`);
  const accept = createHash("sha1").update(`${headers["sec-websocket-key"]}${websocketGuid}`).digest("base64");
  const fields = `connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: ${accept}\r\n`;
  const head = `HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n`;
  socket.write(method === "CONNECT" ? "HTTP/1.1 200 OK\r\n\r\n" : head);
  echo(socket);
}

export function echo(socket: Duplex): void {
  socket.on("error", () => undefined);
  socket.on("data", (chunk: Buffer) =>
    chunk.toString("latin1").endsWith(lastWord) ? socket.end() : socket.write(chunk),
  );
  socket.on("end", () => socket.end());
}
