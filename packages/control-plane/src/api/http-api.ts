// The control plane's HTTP API (15014): one table of paths, the checks that every request passes, and the servers on TCP and on
// the state directory's Unix socket.
import { createHash, timingSafeEqual } from "node:crypto";
import { chmodSync, rmSync } from "node:fs";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ErrorResponse, Finding } from "@tulle/config";
import type { Logger } from "@tulle/telemetry";
import { isLocalRequest } from "./is-local-request.ts";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start quickly").
const { createServer } = process.getBuiltinModule("node:http");

export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The caller has shown the token, or uses the Unix socket: it may write, and see what Secrets hold. */
  readonly isOwner: boolean;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** What a handler gives back; `undefined` when it has written (or will write) the response itself. */
export type ApiAnswer =
  | { readonly status: number; readonly json: unknown }
  | { readonly status: number; readonly text: string; readonly contentType: string }
  | undefined;

export interface ApiRoute {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /** The whole path, or its beginning when it ends in `/`. */
  readonly path: string;
  readonly summary: string;
  readonly handle: (request: ApiRequest) => ApiAnswer | Promise<ApiAnswer>;
}

/** Thrown by handlers: becomes an `ErrorResponse`. */
export class ApiFailure extends Error {
  readonly status: number;
  readonly findings: readonly Finding[] | undefined;

  constructor(status: number, message: string, findings?: readonly Finding[]) {
    super(message);
    this.status = status;
    this.findings = findings;
  }
}

export interface HttpApiOptions {
  readonly address: { readonly host: string; readonly port: number };
  /** Path of the Unix socket, on which no token is asked for: the file's mode decides who may connect. */
  readonly socketPath: string;
  readonly token: string;
  readonly routes: readonly ApiRoute[];
  readonly log: Logger;
}

export interface RunningHttpApi {
  readonly address: { readonly host: string; readonly port: number };
  close(): Promise<void>;
}

const limits = {
  maxConnections: 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 15_000,
  maxHeaderBytes: 16 * 1024,
} as const;

export async function serveHttpApi(options: HttpApiOptions): Promise<RunningHttpApi> {
  const overTcp = makeServer((request, response) => void answer(options, request, response, false));
  const overSocket = makeServer((request, response) => void answer(options, request, response, true));
  await listen(overTcp, options.address);
  rmSync(options.socketPath, { force: true });
  try {
    await listen(overSocket, { path: options.socketPath });
    chmodSync(options.socketPath, 0o600);
  } catch (error) {
    // A path longer than the kernel takes (108 bytes): TCP with the token still works.
    options.log.warning("no Unix socket for the API", { path: options.socketPath, error: (error as Error).message });
  }
  const { port } = overTcp.address() as AddressInfo;
  return {
    address: { host: options.address.host, port },
    close: async () => {
      await Promise.all([close(overTcp), close(overSocket)]);
    },
  };
}

function makeServer(handler: (request: IncomingMessage, response: ServerResponse) => void): Server {
  const server = createServer(
    { maxHeaderSize: limits.maxHeaderBytes, requestTimeout: limits.requestTimeoutMs },
    handler,
  );
  server.maxConnections = limits.maxConnections;
  server.headersTimeout = limits.headersTimeoutMs;
  server.keepAliveTimeout = limits.keepAliveTimeoutMs;
  return server;
}

function listen(
  server: Server,
  where: { readonly host: string; readonly port: number } | { readonly path: string },
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(where, () => {
    server.off("error", reject);
    resolve();
  });
  return promise;
}

function close(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeAllConnections();
  return promise;
}

/** What of an operator's disk keeps a change from being saved; nobody else can help there. */
const storageErrors = new Set(["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "EMFILE", "ENFILE"]);

/** Whoever applies is told why it was not saved, and so does not hold. */
function storageFailure(error: unknown): ApiFailure | undefined {
  if (!(error instanceof Error) || !("code" in error) || !storageErrors.has(String(error.code))) return undefined;
  return new ApiFailure(507, `it cannot be saved: ${error.message}`);
}

async function answer(
  options: HttpApiOptions,
  request: IncomingMessage,
  response: ServerResponse,
  trusted: boolean,
): Promise<void> {
  response.setHeader("x-content-type-options", "nosniff");
  response.setHeader("cache-control", "no-store");
  try {
    send(response, await dispatch(options, request, response, trusted));
  } catch (error) {
    const failure = error instanceof ApiFailure ? error : storageFailure(error);
    if (failure === undefined) {
      options.log.error("a request failed", { path: request.url, error: (error as Error).stack });
    }
    sendError(response, failure ?? new ApiFailure(500, "internal error, see the control plane's log"));
  }
}

async function dispatch(
  options: HttpApiOptions,
  request: IncomingMessage,
  response: ServerResponse,
  trusted: boolean,
): Promise<ApiAnswer> {
  if (!trusted && !isLocalRequest(request.headers, options.address.host)) {
    throw new ApiFailure(403, "this API answers programs of this machine, asked for by a loopback address");
  }
  const url = parseUrl(request.url ?? "/");
  const method = request.method === "HEAD" ? "GET" : (request.method ?? "GET");
  const onPath = options.routes.filter(({ path }) =>
    path.endsWith("/") ? url.pathname.startsWith(path) : url.pathname === path,
  );
  const route = onPath.find((each) => each.method === method);
  if (route === undefined) {
    if (onPath.length === 0) throw new ApiFailure(404, `there is nothing at ${url.pathname}`);
    response.setHeader("allow", onPath.map((each) => each.method).join(", "));
    throw new ApiFailure(405, `${method} is not possible here`);
  }
  const isOwner = trusted || hasToken(request, options.token);
  if (route.method !== "GET" && !isOwner) {
    response.setHeader("www-authenticate", "Bearer");
    throw new ApiFailure(401, "changes need the token of the state directory: Authorization: Bearer <token>");
  }
  return route.handle({ method, path: url.pathname, query: url.searchParams, isOwner, request, response });
}

function parseUrl(text: string): URL {
  try {
    return new URL(text, "http://localhost");
  } catch {
    throw new ApiFailure(400, "the request path is malformed");
  }
}

/** Compared as digests, so that neither content nor length can be told from the time it takes. */
function hasToken(request: IncomingMessage, token: string): boolean {
  const [scheme = "", credentials = ""] = (request.headers.authorization ?? "").split(" ", 2);
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return scheme.toLowerCase() === "bearer" && timingSafeEqual(digest(credentials), digest(token));
}

function send(response: ServerResponse, result: ApiAnswer): void {
  if (result === undefined || response.destroyed) return;
  const text = "json" in result ? `${JSON.stringify(result.json)}\n` : result.text;
  response.writeHead(result.status, {
    "content-type": "json" in result ? "application/json" : result.contentType,
    "content-length": Buffer.byteLength(text),
  });
  response.end(text);
}

function sendError(response: ServerResponse, failure: ApiFailure): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body: ErrorResponse = {
    error: { code: failure.status, message: failure.message },
    ...(failure.findings === undefined ? {} : { findings: failure.findings }),
  };
  // What was not read of the request's body would be taken for the next request.
  response.setHeader("connection", "close");
  send(response, { status: failure.status, json: body });
}
