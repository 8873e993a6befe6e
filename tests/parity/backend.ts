// The back end of the parity table: answers with what it received, and misbehaves on request. Raw sockets under
// node:http where a well-behaved server could not do what a row asks for. Runs as an ordinary workload (HOST, PORT).
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

const version = process.env["VERSION"] ?? "unknown";
const failuresByKey = new Map<string, number>();
const maxKeys = 10_000;

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("latin1");
}

async function echo(request: IncomingMessage, response: ServerResponse, status: number): Promise<void> {
  const body = await readBody(request);
  const answer = JSON.stringify({
    version,
    method: request.method,
    path: request.url,
    headers: request.headers,
    trailers: request.trailers,
    body,
  });
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(answer) });
  response.end(request.method === "HEAD" ? undefined : answer);
}

type Behaviour = (request: IncomingMessage, response: ServerResponse, parameters: URLSearchParams) => unknown;

/** What a path asks for; any other path echoes. */
const behaviours: Readonly<Record<string, Behaviour>> = {
  "/status": (request, response, parameters) => echo(request, response, Number(parameters.get("code") ?? "200")),
  "/no-content": (_request, response) => response.writeHead(204).end(),
  "/not-modified": (_request, response) => response.writeHead(304, { etag: '"a"' }).end(),
  // Never answers: the row's time-out must end it.
  "/hang": () => undefined,
  "/reset": (request) => request.socket.resetAndDestroy(),
  "/close": (request) => request.socket.destroy(),
  "/truncate": (request) => {
    request.socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
    request.socket.end();
  },
  "/garbage": (request) => request.socket.end("SSH-2.0-not-http\r\n\r\n"),
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
  "/until-close": (request) => request.socket.end("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nuntil the end"),
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
  // 503 for the first `times` requests of a key, then 200.
  "/fail-first": (request, response, parameters) => {
    const key = parameters.get("key") ?? "";
    const failures = failuresByKey.get(key) ?? 0;
    if (failures >= Number(parameters.get("times") ?? "1")) return echo(request, response, 200);
    if (failuresByKey.size >= maxKeys) failuresByKey.clear();
    failuresByKey.set(key, failures + 1);
    return echo(request, response, Number(parameters.get("code") ?? "503"));
  },
};

const server = createServer((request, response) => {
  const url = new URL(request.url ?? "/", "http://backend");
  const behaviour = behaviours[url.pathname.replace(/^\/[a-z-]+~/, "/")] ?? ((_a, _b) => echo(request, response, 200));
  void behaviour(request, response, url.searchParams);
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.env["PORT"] ?? "3000"), process.env["HOST"] ?? "127.0.0.1");
process.once("SIGTERM", () => process.exit(0));
