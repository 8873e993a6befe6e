// Istio's health port: tells the platform when a pod's proxy is ready, whichever data plane it is.
import { type Server, createServer } from "node:http";
import { adminRequest } from "./data-plane/admin-request.ts";

export const healthPort = 15_021;
export const healthPath = "/healthz/ready";

const maxConnections = 64;

/** Ready is a proxy that has its first clusters and listeners, which is when its admin page says LIVE. */
async function isReady(podAddress: string): Promise<boolean> {
  try {
    const { status } = await adminRequest(podAddress, "GET", "/ready");
    return status === 200;
  } catch {
    return false;
  }
}

/**
 * Listens on the pod's address until it is disposed of; rejects if the port cannot be bound. A pod that leaves is not ready:
 * nothing new should be sent to it while its requests finish.
 */
export async function startHealthServer(podAddress: string, leaving: AbortSignal): Promise<AsyncDisposable> {
  const server: Server = createServer((request, response) => {
    const respond = (status: number, body: string): void => {
      response.writeHead(status, { "content-type": "text/plain; charset=UTF-8", connection: "close" });
      response.end(`${body}\n`);
    };
    if (request.url !== healthPath) respond(404, "not found");
    else if (request.method !== "GET" && request.method !== "HEAD") respond(405, "GET only");
    else if (leaving.aborted) respond(503, "the agent is stopping");
    else
      void isReady(podAddress).then((ready) => respond(ready ? 200 : 503, ready ? "ready" : "the proxy is not ready"));
  });
  server.maxConnections = maxConnections;
  const listening = Promise.withResolvers<void>();
  server.once("error", listening.reject);
  server.listen(healthPort, podAddress, listening.resolve);
  await listening.promise;
  return {
    [Symbol.asyncDispose]: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}
