// The port that API servers ask (15017): TLS by the mesh's own certificate, one AdmissionReview a request. An API
// server shows no certificate of its own, so that any pod may ask as well: none keeps another one waiting for long.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Logger } from "@tulle/telemetry";
import { type AdmissionAnswer, type AdmissionRequest, answerText, readReview } from "./admission-review.ts";

// Not by an import: see ARCHITECTURE.md, "What makes it start quickly".
const { createServer } = process.getBuiltinModule("node:https");

export interface ServingCredentials {
  readonly privateKeyPem: string;
  readonly certChainPem: string;
}

export interface WebhookServerOptions {
  readonly address: { readonly host: string; readonly port: number };
  readonly credentials: () => ServingCredentials;
  /** Who is asked, by path. */
  readonly handlers: Readonly<
    Record<string, (request: AdmissionRequest) => Promise<AdmissionAnswer> | AdmissionAnswer>
  >;
  /** Asked until it has been true once, for `GET /ready`: who is told so may send what the webhooks are asked about. */
  readonly isReady: () => boolean;
  readonly log: Logger;
}

export interface RunningWebhookServer {
  readonly port: number;
  /** For connections from now on. */
  renew(): void;
  close(): Promise<void>;
}

export const webhookLimits = {
  /** Of one body: an object of etcd has 1.5 MiB at most, and an update brings two. */
  bodyBytes: 8 * 1024 * 1024,
  /** Of all bodies that are being read or answered. */
  allBodiesBytes: 64 * 1024 * 1024,
  /** Of a request, from its first byte to its last: an API server writes it in one go. */
  requestTimeoutMs: 10_000,
  /** Longer than Go keeps an idle connection, so that the one who asks is the one who ends it. */
  keepAliveTimeoutMs: 120_000,
  /** Of more, the one that has been idle the longest ends. */
  connections: 512,
  checkIntervalMs: 1_000,
  headerBytes: 16 * 1024,
} as const;

type Limits = { readonly [K in keyof typeof webhookLimits]: number };

/** Rejects if the address cannot be bound. */
export async function serveWebhooks(
  options: WebhookServerOptions,
  limits: Limits = webhookLimits,
): Promise<RunningWebhookServer> {
  const { address, credentials } = options;
  const reading = { bytes: 0 };
  let wasReady = false;
  const isReady = (): boolean => (wasReady ||= options.isReady());
  const server = createServer(
    {
      ...tlsOptions(credentials()),
      maxHeaderSize: limits.headerBytes,
      requestTimeout: limits.requestTimeoutMs,
      headersTimeout: limits.requestTimeoutMs,
      handshakeTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
    },
    (request, response) => {
      if (request.url === "/ready" && request.method === "GET") endReady(response, isReady());
      else void answer(options, limits, reading, request, response);
    },
  );
  server.keepAliveTimeout = limits.keepAliveTimeoutMs;
  keepTheNewest(server, limits.connections);
  const listening = Promise.withResolvers<void>();
  server.once("error", listening.reject);
  server.listen({ host: address.host, port: address.port }, () => listening.resolve());
  await listening.promise;
  server.off("error", listening.reject);
  return {
    port: (server.address() as AddressInfo).port,
    renew: () => server.setSecureContext(tlsOptions(credentials())),
    close: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      // What is being answered ends by itself, soon.
      server.closeIdleConnections();
      const cut = setTimeout(() => server.closeAllConnections(), limits.requestTimeoutMs / 2);
      await closed.promise;
      clearTimeout(cut);
    },
  };
}

function tlsOptions({ privateKeyPem, certChainPem }: ServingCredentials) {
  return { key: privateKeyPem, cert: certChainPem, minVersion: "TLSv1.2", ALPNProtocols: ["http/1.1"] } as const;
}

/** Whoever opens many connections and says nothing keeps nobody out: the one unused the longest makes way. */
function keepTheNewest(server: ReturnType<typeof createServer>, most: number): void {
  const open = new Set<Socket>();
  const used = (socket: Socket): void => {
    if (!open.delete(socket)) return;
    open.add(socket);
  };
  server.on("connection", (socket: Socket) => {
    for (const oldest of open) {
      if (open.size < most) break;
      open.delete(oldest);
      oldest.destroy();
    }
    open.add(socket);
    socket.on("close", () => open.delete(socket));
  });
  // A connection with TLS is another object than the one below it, which the kernel gave.
  const below = (socket: Socket & { _parent?: Socket | null }): Socket => socket._parent ?? socket;
  server.on("request", ({ socket }: IncomingMessage) => used(below(socket)));
}

async function answer(
  { handlers, log }: WebhookServerOptions,
  limits: Limits,
  reading: { bytes: number },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // Not by `URL`, which throws for what anybody may send ("//").
  const [pathname = ""] = (request.url ?? "").split("?");
  const handler = Object.hasOwn(handlers, pathname) ? handlers[pathname] : undefined;
  if (handler === undefined) return end(response, 404, "there is nothing here");
  if (request.method !== "POST") return end(response, 405, "a review is asked for by POST");
  if (!/^application\/json\b/.test(request.headers["content-type"] ?? "")) {
    return end(response, 415, "a review is application/json");
  }
  // Counted until it is answered: what a handler waits for may take long.
  const counted = new CountedBytes(reading);
  try {
    const body = await readBody(request, limits, counted);
    if (body.status !== undefined) return end(response, body.status, body.problem);
    const review = readReview(body.text);
    if (!review.ok) return end(response, 400, review.problem);
    const said = answerText(review.request, await handler(review.request));
    if (response.destroyed) return;
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(said) });
    response.end(said);
  } catch (error) {
    log.error("a review failed", { path: pathname, error: (error as Error).stack });
    end(response, 500, "internal error, see the control plane's log");
  } finally {
    counted.forget();
  }
}

/** Of one body, in the sum of all. */
class CountedBytes {
  readonly #all: { bytes: number };
  own = 0;

  constructor(all: { bytes: number }) {
    this.#all = all;
  }

  /** Of all. */
  add(bytes: number): number {
    this.own += bytes;
    this.#all.bytes += bytes;
    return this.#all.bytes;
  }

  forget(): void {
    this.#all.bytes -= this.own;
  }
}

type Body =
  | { readonly status: undefined; readonly text: string }
  | { readonly status: number; readonly problem: string };

async function readBody(request: IncomingMessage, limits: Limits, counted: CountedBytes): Promise<Body> {
  const tooLarge = { status: 413, problem: `the body has more than ${limits.bodyBytes} bytes` };
  if (Number(request.headers["content-length"] ?? 0) > limits.bodyBytes) return tooLarge;
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      const all = counted.add(chunk.length);
      if (counted.own > limits.bodyBytes) return tooLarge;
      if (all > limits.allBodiesBytes) return { status: 503, problem: "too many reviews are being read" };
      chunks.push(chunk);
    }
    return { status: undefined, text: Buffer.concat(chunks).toString("utf8") };
  } catch {
    return { status: 400, problem: "the body was cut short" };
  }
}

function endReady(response: ServerResponse, isReady: boolean): void {
  if (isReady) end(response, 200, "ready");
  else end(response, 503, "API servers do not know the webhooks' root yet");
}

function end(response: ServerResponse, status: number, problem: string): void {
  if (response.destroyed || response.headersSent) return;
  // What was not read of the body would be taken for the next request.
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", connection: "close" });
  response.end(`${problem}\n`);
}
