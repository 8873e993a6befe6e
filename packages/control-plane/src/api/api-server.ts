// The HTTP side of every way into the API, with the limits that each of its connections has.
import type { RequestListener, Server } from "node:http";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start quickly").
const { createServer } = process.getBuiltinModule("node:http");

const limits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 15_000,
  maxHeaderBytes: 16 * 1024,
} as const;

export function apiServer(handler: RequestListener): Server {
  const server = createServer(
    { maxHeaderSize: limits.maxHeaderBytes, requestTimeout: limits.requestTimeoutMs },
    handler,
  );
  server.headersTimeout = limits.headersTimeoutMs;
  server.keepAliveTimeout = limits.keepAliveTimeoutMs;
  return server;
}
