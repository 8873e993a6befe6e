// The back end of the parity table: answers with what it received, and misbehaves on request. Runs as an ordinary
// workload: HTTP/1.1 at PORT_HTTP, HTTP/2 at PORT_HTTP2. Where node:http is too well-behaved for a row, the row's bytes
// go straight to the socket, which HTTP/2 has not.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import http2 from "node:http2";

const version = process.env["VERSION"] ?? "unknown";
const failuresByKey = new Map<string, number>();
const maxKeys = 10_000;

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("latin1");
}

/** Each name once; several values of one stay apart. */
function fieldsOf(raw: readonly string[]): Record<string, string> {
  const fields: Record<string, string> = {};
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index]!.toLowerCase();
    const value = raw[index + 1]!;
    fields[name] = name in fields ? `${fields[name]} | ${value}` : value;
  }
  return fields;
}

async function echo(request: IncomingMessage, response: ServerResponse, status: number): Promise<void> {
  const body = await readBody(request);
  const answer = JSON.stringify({
    version,
    method: request.method,
    path: request.url,
    headers: fieldsOf(request.rawHeaders),
    trailers: request.trailers,
    // Long bodies would be noise; their length and their ends say enough.
    body: body.length <= 100 ? body : `${body.slice(0, 20)}…${body.length} bytes…${body.slice(-20)}`,
  });
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(answer) });
  response.end(request.method === "HEAD" ? undefined : answer);
}

type Behaviour = (request: IncomingMessage, response: ServerResponse, parameters: URLSearchParams) => unknown;

/** Writes the text instead of an answer and ends the connection. */
const raw =
  (text: string): Behaviour =>
  (request) =>
    request.socket.end(text, "latin1");

/** What a path asks for; any other path echoes. */
const behaviours: Readonly<Record<string, Behaviour>> = {
  "/status": (request, response, parameters) => echo(request, response, Number(parameters.get("code") ?? "200")),
  "/no-content": (_request, response) => response.writeHead(204).end(),
  "/not-modified": (_request, response) => response.writeHead(304, { etag: '"a"' }).end(),
  // Never answers: the row's time-out must end it.
  "/hang": () => undefined,
  "/hang-in-body": (_request, response) => response.writeHead(200, { "content-length": 10 }).write("half"),
  "/reset": (request) => request.socket.resetAndDestroy(),
  "/close": (request) => request.socket.destroy(),
  "/truncate": raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"),
  "/truncate-chunked": raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"),
  "/garbage": raw("SSH-2.0-not-http\r\n\r\n"),
  "/nul-in-header": raw("HTTP/1.1 200 OK\r\nx-bad: a\0b\r\ncontent-length: 0\r\n\r\n"),
  "/space-in-name": raw("HTTP/1.1 200 OK\r\nx bad: a\r\ncontent-length: 0\r\n\r\n"),
  "/two-lengths": raw("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"),
  "/length-and-chunked": raw("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
  "/bad-length": raw("HTTP/1.1 200 OK\r\ncontent-length: 1x\r\n\r\na"),
  "/bad-chunk": raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
  "/long-head": (request, response, parameters) => {
    // In pieces, since some clients of HTTP/2 take no field of 64 KiB.
    const fields = `x-long: ${"a".repeat(10 * 1024 - 10)}\r\n`.repeat(Number(parameters.get("kib")) / 10);
    const answer = `HTTP/1.1 200 OK\r\nconnection: close\r\n${fields}content-length: 0\r\n\r\n`;
    return raw(answer)(request, response, parameters);
  },
  "/http10": raw("HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nten"),
  "/hop-by-hop": raw(
    "HTTP/1.1 200 OK\r\nconnection: close, x-gone\r\nx-gone: 1\r\nkeep-alive: timeout=5\r\nx-kept: 1\r\ncontent-length: 0\r\n\r\n",
  ),
  "/until-close": raw("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nuntil the end"),
  "/early-hints": (request, response) => {
    response.writeEarlyHints({ link: "</style.css>; rel=preload" });
    return echo(request, response, 200);
  },
  "/chunked": (_request, response) => {
    response.writeHead(200, { "content-type": "text/plain", trailer: "x-sum" });
    response.write("one ");
    response.write("two");
    response.addTrailers({ "x-sum": "2" });
    response.end();
  },
  // Begins its answer before it has read the request, and never ends it.
  "/early": (_request, response) => response.writeHead(200, { "content-type": "text/plain" }).write("begun"),
  "/large": (_request, response) => {
    response.writeHead(200, { "content-type": "text/plain", "content-length": 1024 * 1024 });
    response.end("0123456789abcdef".repeat(64 * 1024));
  },
  "/large-chunked": (_request, response) => {
    response.writeHead(200, { "content-type": "text/plain" });
    for (let part = 0; part < 16; part += 1) response.write("0123456789abcdef".repeat(4096));
    response.end();
  },
  "/repeated-headers": (_request, response) => {
    response.writeHead(
      200,
      [
        ["set-cookie", "a=1"],
        ["set-cookie", "b=2"],
        ["x-many", "1"],
        ["x-many", "2"],
        ["content-length", "0"],
      ].flat(),
    );
    response.end();
  },
  "/internal-headers": (_request, response) => {
    response.writeHead(200, {
      "x-envoy-upstream-service-time": "7",
      "x-envoy-decorator-operation": "op",
      server: "backend",
      "content-length": 0,
    });
    response.end();
  },
  // 503 (or `code`) for the first `times` requests of a key, then 200.
  "/fail-first": (request, response, parameters) => {
    const key = parameters.get("key") ?? "";
    const failures = failuresByKey.get(key) ?? 0;
    if (failures >= Number(parameters.get("times") ?? "1")) return echo(request, response, 200);
    if (failuresByKey.size >= maxKeys) failuresByKey.clear();
    failuresByKey.set(key, failures + 1);
    return echo(request, response, Number(parameters.get("code") ?? "503"));
  },
};

/** What a host of HTTP/2 does in another way; a connection of its own is not one call's to end. */
const overHttp2: typeof behaviours = {
  "/reset": (_request, response) => streamOf(response).close(http2.constants.NGHTTP2_INTERNAL_ERROR),
  "/refuse": (_request, response) => streamOf(response).close(http2.constants.NGHTTP2_REFUSED_STREAM),
  "/truncate": (_request, response) => {
    response.writeHead(200, { "content-length": 100 });
    response.end("half");
  },
  "/truncate-chunked": (_request, response) => {
    response.writeHead(200).write("half", () => streamOf(response).close(http2.constants.NGHTTP2_INTERNAL_ERROR));
  },
};

const streamOf = (response: ServerResponse): http2.ServerHttp2Stream =>
  (response as unknown as http2.Http2ServerResponse).stream;

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://backend");
  const name = url.pathname.replace(/^\/[a-z0-9-]+~/, "/");
  const behaviour =
    (request.httpVersion === "2.0" ? overHttp2[name] : undefined) ??
    behaviours[name] ??
    (() => echo(request, response, 200));
  try {
    await behaviour(request, response, url.searchParams);
  } catch {
    // The proxy gave the request up while its body was being read.
  }
}

const server = createServer({ maxHeaderSize: 128 * 1024 }, serve);
// Speaks "websocket" without frames: what comes back is what was sent, once, and then the end.
server.on("upgrade", (_request, socket) => {
  socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
  socket.once("data", (chunk: Buffer) => socket.end(chunk));
});
server.keepAliveTimeout = 60_000;
const host = process.env["HOST"] ?? "127.0.0.1";
server.listen(Number(process.env["PORT_HTTP"]), host);
const serveAnyVersion = serve as unknown as (
  request: http2.Http2ServerRequest,
  response: http2.Http2ServerResponse,
) => void;
http2.createServer({ maxHeaderListPairs: 200 }, serveAnyVersion).listen(Number(process.env["PORT_HTTP2"]), host);
process.once("SIGTERM", () => process.exit(0));
