// A request through a tunnel that a proxy opens by CONNECT.
import assert from "node:assert/strict";
import type { Socket } from "node:net";

/** All that comes: the answer to CONNECT, and behind it the one to a request that is sent then. */
export async function throughTunnel(socket: Socket, target: string, path: string): Promise<string> {
  socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n\r\n`);
  let received = "";
  let isOpen = false;
  for await (const chunk of socket) {
    received += String(chunk);
    if (!isOpen && received.includes("\r\n\r\n")) {
      assert.match(received, /^HTTP\/1\.1 200 /);
      isOpen = true;
      socket.write(`GET ${path} HTTP/1.1\r\nhost: any\r\nconnection: close\r\n\r\n`);
    }
  }
  return received;
}
