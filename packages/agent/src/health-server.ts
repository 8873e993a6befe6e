// Istio's ports of an agent: one tells the platform when a pod's proxy is ready, the other has the metrics of proxy and
// agent together, whichever data plane it is.
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { acceptBacklog, oldestMakesWay } from "@tulle/listening";
import type { MergedMetrics } from "./scrape/merged-metrics.ts";
import { metricsPort } from "./settings.ts";
import type { RunningDataPlane } from "./data-plane/data-plane.ts";

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { createServer } = process.getBuiltinModule("node:http");

export const healthPort = 15_021;
export const healthPath = "/healthz/ready";
export const metricsPath = "/stats/prometheus";

/**
 * Of each port, those that have not asked yet. Any user of the machine may take them all; the oldest makes way, so that
 * no probe is kept out.
 */
const maxWaiting = 256;
const maxConnections = 1024;
/**
 * Pages of metrics that somebody has not taken yet: each is there as a whole, and anybody may ask and read nothing. The
 * oldest makes way.
 */
export const maxPages = 16;

export interface HealthServerOptions {
  readonly podAddress: string;
  /** A pod that leaves is not ready: nothing new should be sent to it while its requests finish. */
  readonly leaving: AbortSignal;
  /** Undefined while there is none yet. */
  readonly dataPlane: () => RunningDataPlane | undefined;
  readonly metrics: Pick<MergedMetrics, "page">;
}

/** Listens on the pod's address until it is disposed of; rejects if a port cannot be bound. */
export async function startHealthServer({
  podAddress,
  leaving,
  dataPlane,
  metrics,
}: HealthServerOptions): Promise<AsyncDisposable> {
  const pages = new Set<ServerResponse>();
  const admitPage = (response: ServerResponse): void => {
    const [oldest] = pages;
    if (pages.size >= maxPages) oldest!.destroy();
    pages.add(response);
    response.once("close", () => pages.delete(response));
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const respond = (status: number, body: string, contentType = "text/plain; charset=UTF-8"): void => {
      if (response.destroyed) return;
      response.writeHead(status, { "content-type": contentType, connection: "close" });
      response.end(body);
    };
    // Istio's agent answers at both.
    const isMetrics = request.url === metricsPath || request.url === "/metrics";
    if (request.url !== healthPath && !isMetrics) respond(404, "not found\n");
    else if (request.method !== "GET" && request.method !== "HEAD") respond(405, "GET only\n");
    else if (isMetrics) {
      admitPage(response);
      void metrics.page(request.headers).then(({ contentType, text }) => respond(200, text, contentType));
    } else if (leaving.aborted) respond(503, "the agent is stopping\n");
    else
      void (dataPlane()?.isReady() ?? Promise.resolve(false)).then((ready) =>
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
