// Bounds the connections of an HTTP server without keeping anybody out: who holds many and asks nothing loses them to
// who comes next.
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** So many connections on which no request is answered now; the one that has been so longest is closed for one more. */
export function oldestMakesWay(server: Server, maxWaiting: number): void {
  const waiting = new Set<Socket>();
  const wait = (socket: Socket): void => {
    for (const oldest of waiting) {
      if (waiting.size < maxWaiting) break;
      // Forgotten at once: its end comes only after all that have knocked together are taken.
      waiting.delete(oldest);
      oldest.destroy();
    }
    waiting.add(socket);
  };
  server.on("connection", (socket: Socket) => {
    wait(socket);
    socket.on("close", () => waiting.delete(socket));
  });
  server.prependListener("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    waiting.delete(socket);
    response.on("close", () => {
      if (!socket.destroyed) wait(socket);
    });
  });
}
