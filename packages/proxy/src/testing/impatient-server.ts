// Node's own HTTP server on a thread of its own. Its first connection is out of patience while a request already waits
// on it unread: what a server that is busy does to a connection on which nothing has come for a minute.
import http from "node:http";
import type { AddressInfo } from "node:net";
import { isMainThread, workerData } from "node:worker_threads";

/**
 * What stands in the first cell that the threads share: nothing accepted yet is 0, and at `accepted` the server stands
 * still.
 */
export const serverStates = { accepted: 1, released: 2 } as const;
/** The cell of its port, 0 until it listens. */
export const portCell = 1;

const patientMs = 60_000;
const impatientMs = 10;

function serve(state: Int32Array): void {
  let connections = 0;
  const options = { headersTimeout: patientMs, connectionsCheckingInterval: 1 };
  const server = http.createServer(options, (_request, response) => response.end("ok"));
  server.on("connection", () => {
    connections += 1;
    server.headersTimeout = connections === 1 ? impatientMs : patientMs;
    if (connections > 1) return;
    const endMs = performance.now() + 2 * impatientMs;
    Atomics.store(state, 0, serverStates.accepted);
    Atomics.wait(state, 0, serverStates.accepted);
    while (performance.now() < endMs);
  });
  server.listen(0, "127.0.0.1", () => Atomics.store(state, portCell, (server.address() as AddressInfo).port));
}

if (!isMainThread) serve(workerData as Int32Array);
