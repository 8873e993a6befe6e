// What every program of the shop needs to be a server: it listens where HOST and PORT say, answers JSON, and ends
// cleanly.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

export type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** A server whose handler may be asynchronous; what it throws becomes 500 and a line on standard error. */
export function createAppServer(handler: Handler): Server {
  const server = createServer((request, response) => {
    Promise.resolve()
      .then(() => handler(request, response))
      .catch((error: unknown) => {
        process.stderr.write(`${request.method} ${request.url}: ${reasonOf(error)}\n`);
        if (response.headersSent) response.destroy();
        else sendJson(response, 500, { error: "internal error" });
      });
  });
  // The sidecar keeps connections to the app open and closes idle ones itself. If the app did it first, a request
  // already on its way would be lost.
  server.keepAliveTimeout = 0;
  return server;
}

/** Listens on HOST:PORT (default: all addresses, `defaultPort`); SIGTERM and SIGINT let running requests finish. */
export function serve(name: string, defaultPort: number, handler: Handler): void {
  const server = createAppServer(handler);
  const host = process.env["HOST"] ?? "0.0.0.0";
  const port = Number(process.env["PORT"] ?? defaultPort);
  server.listen(port, host, () => process.stdout.write(`${name} listens on http://${host}:${port}\n`));
  onEnd(() => {
    server.close();
    server.closeIdleConnections();
  });
}

/** Calls `end` when the process is told to end. */
export function onEnd(end: () => void): void {
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, end);
}

/** Why a call failed, for the log. `fetch` hides it in `cause`. */
export function reasonOf(error: unknown): string {
  const reason = error instanceof Error ? (error.cause ?? error) : error;
  return reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { "content-type": "application/json", "content-length": bytes.length });
  response.end(bytes);
}

export function sendText(response: ServerResponse, status: number, text: string): void {
  const bytes = Buffer.from(text);
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "content-length": bytes.length });
  response.end(bytes);
}

/** Answers 405 unless the request's method is one of `allowed`; true when it is. GET allows HEAD. */
export function methodIs(request: IncomingMessage, response: ServerResponse, ...allowed: readonly string[]): boolean {
  const methods = allowed.includes("GET") ? [...allowed, "HEAD"] : allowed;
  if (methods.includes(request.method ?? "")) return true;
  response.setHeader("allow", methods.join(", "));
  sendJson(response, 405, { error: `method ${request.method} is not allowed here` });
  return false;
}

/** The body as text, or undefined when it is longer than `maxBytes`. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= maxBytes) chunks.push(chunk);
  }
  return bytes > maxBytes ? undefined : Buffer.concat(chunks).toString("utf8");
}

/** The path of a request without its query; undefined when the target is not a path. */
export function pathOf(request: IncomingMessage): string | undefined {
  return URL.parse(request.url ?? "", "http://app")?.pathname;
}

// Headers that tie the spans of one request together, in the formats in use. A mesh makes the spans, but only the
// program knows which outgoing request belongs to which incoming one.
const tracingHeaders = [
  "x-request-id",
  "traceparent",
  "tracestate",
  "baggage",
  "b3",
  "x-b3-traceid",
  "x-b3-spanid",
  "x-b3-parentspanid",
  "x-b3-sampled",
  "x-b3-flags",
  "x-ot-span-context",
  "x-cloud-trace-context",
  "grpc-trace-bin",
];

/** The headers of an incoming request that a call made on its behalf carries on. */
export function headersToForward(request: IncomingMessage): Record<string, string> {
  const forwarded: Record<string, string> = {};
  for (const name of [...tracingHeaders, "x-dark-launch"]) {
    const value = request.headers[name];
    if (typeof value === "string") forwarded[name] = value;
  }
  return forwarded;
}
