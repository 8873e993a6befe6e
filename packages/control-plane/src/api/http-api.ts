// The control plane's HTTP API: the checks that every request passes on the way to its route, and the three ways in:
// the Unix socket of the state directory's owner, TLS on TCP (15014) with the token, and TCP in the clear, where little
// is answered and nothing asked.
import { createHash, timingSafeEqual } from "node:crypto";
import { chmodSync, rmSync } from "node:fs";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { DescriptorReserve } from "@tulle/listening";
import type { Endpoint, ErrorResponse } from "@tulle/config/api";
import type { Logger, ProcessTracer } from "@tulle/telemetry";
import type { ServerTlsCredentials } from "@tulle/xds";
import { ApiFailure } from "./api-failure.ts";
import { apiServer } from "./api-server.ts";
import { EventStream } from "./event-stream.ts";
import { isLocalRequest, isLocalOrigin } from "./is-local-request.ts";
import { type ApiReply, type ApiRoute, routeOf, routesOn, type Transport } from "./routes.ts";
import { TcpDoor } from "./tcp-door.ts";

export interface HttpApiOptions {
  readonly address: { readonly host: string; readonly port: number };
  /** Path of the Unix socket, on which no token is asked for: it lies in a folder of its owner alone. */
  readonly socketPath: string;
  readonly token: string;
  /** Asked for by any name: in a pod the mesh's monitoring and the node's probes come by its address. */
  readonly isReachedByAnyHost?: boolean | undefined;
  /** For TLS on the TCP port; undefined in a mesh without an authority. */
  readonly credentials: ServerTlsCredentials | undefined;
  readonly descriptors: DescriptorReserve;
  readonly routes: readonly ApiRoute[];
  readonly log: Logger;
  /** Undefined: tracing is off. */
  readonly tracer?: ProcessTracer | undefined;
}

export interface RunningHttpApi {
  readonly address: { readonly host: string; readonly port: number };
  /** For connections from now on. */
  setCredentials(credentials: ServerTlsCredentials): void;
  close(): Promise<void>;
}

/** On the Unix socket, which nobody's connections to the TCP port count for. */
const maxOwnerConnections = 1024;

export async function serveHttpApi(options: HttpApiOptions): Promise<RunningHttpApi> {
  const handler =
    (transport: Transport) =>
    (request: IncomingMessage, response: ServerResponse, admit = () => true): void =>
      void answer({ options, admit, transport }, request, response);
  const door = new TcpDoor({ ...options, onPlain: handler("plain"), onTls: handler("tls") });
  const overSocket = apiServer(handler("socket"));
  overSocket.maxConnections = maxOwnerConnections;
  const port = await door.listen(options.address);
  try {
    rmSync(options.socketPath, { force: true });
    await listen(overSocket, options.socketPath);
    chmodSync(options.socketPath, 0o600);
  } catch (error) {
    await door.close();
    throw error;
  }
  return {
    address: { host: options.address.host, port },
    setCredentials: (credentials) => door.setCredentials(credentials),
    close: async () => {
      await Promise.all([door.close(), close(overSocket)]);
    },
  };
}

function listen(server: Server, path: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen({ path }, () => {
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

interface WayIn {
  readonly options: HttpApiOptions;
  /** See `TcpDoorOptions.onTls`. */
  readonly admit: () => boolean;
  readonly transport: Transport;
}

async function answer(way: WayIn, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { options, transport } = way;
  response.setHeader("x-content-type-options", "nosniff");
  response.setHeader("cache-control", "no-store");
  // A connection in the clear ends soon in any case; a client is told so before it asks again on it.
  if (transport === "plain") response.setHeader("connection", "close");
  try {
    await dispatch(way, request, response);
  } catch (error) {
    const failure = error instanceof ApiFailure ? error : storageFailure(error);
    if (failure === undefined) {
      options.log.error("a request failed", { path: request.url, error: (error as Error).stack });
    }
    sendError(response, failure ?? new ApiFailure(500, "internal error, see the control plane's log"));
  }
}

async function dispatch(way: WayIn, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { options, transport } = way;
  refuseBrowsers(way, request);
  const isOwner = proves(way, request);
  const url = parseUrl(request.url ?? "/");
  const method = request.method === "HEAD" ? "GET" : (request.method ?? "GET");
  const onPath = routesOn(options.routes, url.pathname);
  const route = routeOf(onPath, method, url.pathname);
  if (!isOwner && route?.endpoint.isPublic !== true) throw unproven(transport, response);
  if (route === undefined) {
    if (onPath.length === 0) throw new ApiFailure(404, `there is nothing at ${url.pathname}`);
    response.setHeader("allow", [...new Set(onPath.map(({ endpoint }) => endpoint.method))].join(", "));
    throw new ApiFailure(405, `${method} is not possible here`);
  }
  const asked = { path: url.pathname, query: url.searchParams, transport, request };
  traceRequest(options.tracer, route.endpoint, request, response);
  send(response, route.endpoint.answer, await route.handle(asked));
}

/** A request is a span by the pattern of its path, joined to the caller's; what its path and query say is not told. */
function traceRequest(
  tracer: ProcessTracer | undefined,
  { method, path, isPublic }: Endpoint,
  { headers }: IncomingMessage,
  response: ServerResponse,
): void {
  // Nobody but the owner decides what is sampled.
  const parent = isPublic === true ? undefined : headers["traceparent"]?.toString();
  const span = tracer?.start(`${method} ${path}`, { kind: "server", parent });
  if (span === undefined) return;
  span.set("http.request.method", method);
  span.set("http.route", path);
  response.once("close", () => {
    span.set("http.response.status_code", response.statusCode);
    span.end(response.statusCode >= 500 ? String(response.statusCode) : undefined);
  });
}

/** No page of the web gets here, neither by its own name nor by one that it has pointed to this machine. */
function refuseBrowsers({ options, transport }: WayIn, { headers }: IncomingMessage): void {
  const ownHost = options.address.host;
  // Behind TLS a name proves nothing and is not needed: the token decides, and no browser sends it by itself.
  const asksForHost = transport === "plain" && options.isReachedByAnyHost !== true;
  const isLocal = asksForHost ? isLocalRequest(headers, ownHost) : isLocalOrigin(headers, ownHost);
  if (transport !== "socket" && !isLocal) {
    throw new ApiFailure(403, "this API answers programs of this machine, asked for by a loopback address");
  }
}

/** Whether the owner asks: by the Unix socket, or over TLS with the token. */
function proves({ options, admit, transport }: WayIn, request: IncomingMessage): boolean {
  if (transport !== "tls") return transport === "socket";
  if (!hasToken(request, options.token)) return false;
  if (!admit()) throw new ApiFailure(503, "there are too many connections");
  return true;
}

function unproven(transport: Transport, response: ServerResponse): ApiFailure {
  if (transport === "tls") {
    response.setHeader("www-authenticate", "Bearer");
    return new ApiFailure(401, "this needs the token of the state directory: Authorization: Bearer <token>");
  }
  return new ApiFailure(
    403,
    "over TCP in the clear only /ready, /version and /metrics are answered: ask by the state directory's Unix socket, or by https " +
      "with the token (never send it in the clear)",
  );
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

function send(response: ServerResponse, declared: Endpoint["answer"], reply: ApiReply): void {
  if (response.destroyed) return;
  const contentType = "contentType" in declared ? declared.contentType : "";
  if ("json" in reply) sendJson(response, reply.status, reply.json);
  else if ("follow" in reply) reply.follow(new EventStream(response, contentType));
  else if ("text" in reply) sendWhole(response, 200, reply.contentType ?? contentType, reply.text);
  else sendWhole(response, 200, reply.contentType, reply.bytes);
}

function sendJson(response: ServerResponse, status: number, json: unknown): void {
  sendWhole(response, status, "application/json", `${JSON.stringify(json)}\n`);
}

function sendWhole(response: ServerResponse, status: number, contentType: string, body: string | Uint8Array): void {
  response.writeHead(status, { "content-type": contentType, "content-length": Buffer.byteLength(body) });
  response.end(body);
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
  if (!response.destroyed) sendJson(response, failure.status, body);
}
