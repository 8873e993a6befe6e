// The HTTP side of every way into the API, with the limits that each of its connections has.
import type { RequestListener, Server } from "node:http";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { createServer } = process.getBuiltinModule("node:http");

export const apiLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 15_000,
  /** How often the first two are looked at; Node's 30 s would make 40 s of 10. */
  checkIntervalMs: 1_000,
  maxHeaderBytes: 16 * 1024,
} as const;

type ApiLimits = { readonly [K in keyof typeof apiLimits]: number };

export function apiServer(handler: RequestListener, limits: ApiLimits = apiLimits): Server {
  const server = createServer(
    {
      maxHeaderSize: limits.maxHeaderBytes,
      requestTimeout: limits.requestTimeoutMs,
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
    },
    handler,
  );
  server.keepAliveTimeout = limits.keepAliveTimeoutMs;
  return server;
}

/** One that listens nowhere itself: connections are handed to it, by the event "connection". */
export function handedApiServer(handler: RequestListener, limits: ApiLimits = apiLimits): Server {
  const server = apiServer(handler, limits);
  // With this event Node begins to look at the times of a server's connections; without it none ever ends a half-sent
  // request.
  server.emit("listening");
  return server;
}
