// Pages of metrics that nobody takes are bounded, and keep out nobody who reads.
import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { test } from "node:test";
import { freeAddressBlock, waitFor } from "../../../tests/tools/processes.ts";
import { maxPages, startHealthServer } from "./health-server.ts";
import { metricsPort } from "./settings.ts";

/** More than the sockets' buffers of both ends hold. */
const page = "x".repeat(16 * 1024 * 1024);

async function bytesOf(socket: net.Socket): Promise<number> {
  let bytes = 0;
  socket.on("data", (chunk) => (bytes += chunk.length)).on("error", () => undefined);
  socket.resume();
  await once(socket, "close");
  return bytes;
}

test("who reads nothing makes way for who asks later, the oldest first", async (context) => {
  const podAddress = `${await freeAddressBlock()}.1`;
  let asked = 0;
  const metrics = {
    page: () => {
      asked += 1;
      return Promise.resolve({ contentType: "text/plain", text: page });
    },
  };
  const leaving = new AbortController().signal;
  const server = await startHealthServer({ podAddress, leaving, dataPlane: () => undefined, metrics });
  context.after(() => server[Symbol.asyncDispose]());
  const idle: net.Socket[] = [];
  for (let index = 0; index < maxPages; index += 1) {
    const socket = net.connect(metricsPort, podAddress).pause();
    context.after(() => socket.destroy());
    socket.write("GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n");
    idle.push(socket);
    await waitFor(() => asked === index + 1, { what: `page ${index + 1}` });
  }
  const answer = await fetch(`http://${podAddress}:${metricsPort}/metrics`);
  assert.equal((await answer.text()).length, page.length);
  assert.ok((await bytesOf(idle[0]!)) < page.length);
  assert.ok((await bytesOf(idle[1]!)) > page.length);
});
