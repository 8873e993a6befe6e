// Who holds the places of a server keeps nobody out, and nobody's request is dropped for it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { test } from "node:test";
import { waitFor } from "../../../tests/tools/processes.ts";
import { oldestMakesWay } from "./oldest-makes-way.ts";

test("of too many connections the oldest is closed, and whoever has asked is answered", async (context) => {
  const asked: ServerResponse[] = [];
  const server = createServer((_request, response) => void asked.push(response));
  oldestMakesWay(server, 8);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  context.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const open = async (): Promise<Socket> => {
    const socket = connect(port, "127.0.0.1").on("error", () => undefined);
    sockets.push(socket.resume());
    await once(socket, "connect");
    return socket;
  };
  const first = await open();
  first.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await waitFor(() => asked.length === 1, { what: "the first request" });
  for (let opened = 0; opened < 20; opened += 1) await open();
  await waitFor(() => sockets.filter(({ closed }) => closed).length === 12, { what: "the end of the oldest" });
  assert.ok(sockets.slice(-8).every(({ closed }) => !closed));
  const answer = once(first, "data");
  asked[0]!.end();
  assert.match(String(await answer), /^HTTP\/1\.1 200 OK/);
  // From now on it waits like the others, as the newest of them: one of those goes.
  await waitFor(() => sockets.filter(({ closed }) => closed).length === 13, { what: "the end of one more" });
  for (let opened = 0; opened < 7; opened += 1) await open();
  assert.ok(!first.closed);
  await open();
  await waitFor(() => first.closed, { what: "its turn" });
});
