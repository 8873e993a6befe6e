// Bounds the connections of an HTTP server without keeping anybody out: who holds many and asks nothing loses them to who comes next.
import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";

/**
 * So many connections whose request has not come; the oldest is closed for one more. Whoever has asked is answered. For servers that close
 * a connection with its answer.
 */
export function oldestMakesWay(server: Server, maxWaiting: number): void {
  const waiting = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    for (const oldest of waiting) {
      if (waiting.size < maxWaiting) break;
      // Forgotten at once: its end comes only after all that have knocked together are taken.
      waiting.delete(oldest);
      oldest.destroy();
    }
    waiting.add(socket);
    socket.on("close", () => waiting.delete(socket));
  });
  server.prependListener("request", ({ socket }: IncomingMessage) => waiting.delete(socket));
}
