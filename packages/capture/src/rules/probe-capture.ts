// Whether this network namespace is captured, asked without any right: who dials a port of capture himself is refused,
// whatever the plan was (capture-rules.ts, `input`).
import { connect, createServer } from "node:net";

/** Istio's port for what comes in; no plan of ours leaves its refusal out. */
const inboundPort = 15_006;
const host = "127.0.0.1";
const timeoutMs = 2000;

/** Where nobody listens there, it does so itself meanwhile. @throws where the port cannot be tried */
export async function isCaptured(port = inboundPort): Promise<boolean> {
  const server = createServer((socket) => socket.destroy());
  const listening = Promise.withResolvers<void>();
  server.once("error", (error: NodeJS.ErrnoException) =>
    error.code === "EADDRINUSE" ? listening.resolve() : listening.reject(error),
  );
  server.listen({ port, host }, listening.resolve);
  await listening.promise;
  try {
    return !(await isTaken(port));
  } finally {
    server.close();
  }
}

function isTaken(port: number): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const socket = connect({ host, port, timeout: timeoutMs });
  socket.once("connect", () => resolve(true));
  // Rules that say nothing are not ours.
  socket.once("timeout", () => reject(new Error(`no answer at ${host}:${port} in ${timeoutMs} ms`)));
  socket.once("error", (error: NodeJS.ErrnoException) =>
    error.code === "ECONNREFUSED" ? resolve(false) : reject(error),
  );
  return promise.finally(() => socket.destroy());
}
