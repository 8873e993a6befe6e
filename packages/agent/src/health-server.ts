// Istio's ports of an agent: one tells the platform when a pod's proxy is ready, the other has the metrics of proxy and
// agent together, whichever data plane it is.
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { acceptBacklog, oldestMakesWay } from "@tulle/listening";
import { adminRequest } from "./data-plane/admin-request.ts";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { createServer } = process.getBuiltinModule("node:http");

export const healthPort = 15_021;
export const healthPath = "/healthz/ready";
export const metricsPort = 15_020;
export const metricsPath = "/stats/prometheus";

/**
 * Of each port, those that have not asked yet. Any user of the machine may take them all; the oldest makes way, so that
 * no probe is kept out.
 */
const maxWaiting = 256;
const maxConnections = 1024;

/** Ready is a proxy that has its first clusters and listeners, which is when its admin page says LIVE. */
async function isReady(podAddress: string): Promise<boolean> {
  try {
    const { status } = await adminRequest(podAddress, "GET", "/ready");
    return status === 200;
  } catch {
    return false;
  }
}

/** The proxy's metrics with the agent's; the agent's alone while the proxy does not answer. */
async function allMetrics(podAddress: string, ownMetrics: () => string): Promise<string> {
  const proxyMetrics = await adminRequest(podAddress, "GET", metricsPath).catch(() => undefined);
  return `${proxyMetrics?.status === 200 ? proxyMetrics.body : ""}${ownMetrics()}`;
}

/**
 * Listens on the pod's address until it is disposed of; rejects if a port cannot be bound. A pod that leaves is not
 * ready: nothing new should be sent to it while its requests finish.
 */
export async function startHealthServer(
  podAddress: string,
  leaving: AbortSignal,
  ownMetrics: () => string,
): Promise<AsyncDisposable> {
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const respond = (status: number, body: string): void => {
      response.writeHead(status, { "content-type": "text/plain; charset=UTF-8", connection: "close" });
      response.end(body);
    };
    const isMetrics = request.url === metricsPath;
    if (request.url !== healthPath && !isMetrics) respond(404, "not found\n");
    else if (request.method !== "GET" && request.method !== "HEAD") respond(405, "GET only\n");
    else if (isMetrics) void allMetrics(podAddress, ownMetrics).then((text) => respond(200, text));
    else if (leaving.aborted) respond(503, "the agent is stopping\n");
    else
      void isReady(podAddress).then((ready) =>
        respond(ready ? 200 : 503, ready ? "ready\n" : "the proxy is not ready\n"),
      );
  };
  const servers: Server[] = [];
  const close = async (): Promise<void> => void (await Promise.all(servers.map(closeServer)));
  try {
    for (const port of [healthPort, metricsPort]) servers.push(await listen(onRequest, port, podAddress));
  } catch (error) {
    await close();
    throw error;
  }
  return { [Symbol.asyncDispose]: close };
}

async function listen(onRequest: RequestListener, port: number, address: string): Promise<Server> {
  const server = createServer(onRequest);
  server.maxConnections = maxConnections;
  oldestMakesWay(server, maxWaiting);
  const listening = Promise.withResolvers<void>();
  server.once("error", listening.reject);
  server.listen({ port, host: address, backlog: acceptBacklog }, listening.resolve);
  await listening.promise;
  return server;
}

async function closeServer(server: Server): Promise<void> {
  const closed = Promise.withResolvers<void>();
  server.close(() => closed.resolve());
  server.closeAllConnections();
  await closed.promise;
}
