// The machine's localhost while a command runs: to whom its ports lead, and which of them do not.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, connect, type AddressInfo, type Server } from "node:net";
import { test, type TestContext } from "node:test";
import { text } from "node:stream/consumers";
import { freeAddressBlock, freePort, startProcess } from "../../../../../tests/tools/processes.ts";
import { ToolUnavailable } from "../../../../../tests/tools/tool-unavailable.ts";
import { LocalhostPorts } from "./localhost-ports.ts";

/** Says back what came, once all of it has, behind the name. */
async function startEcho(t: TestContext, name: string, host: string, port = 0): Promise<AddressInfo> {
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    let said = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => (said += chunk));
    socket.on("error", () => undefined).on("end", () => socket.end(`${name}: ${said}`));
  });
  server.listen({ host, port });
  await once(server, "listening");
  t.after(() => server.close());
  return server.address() as AddressInfo;
}

/** All that comes; the code of the error where the connection fails. */
async function ask(host: string, port: number): Promise<string> {
  const socket = connect({ host, port });
  socket.end("hello");
  return text(socket).catch((error: NodeJS.ErrnoException) => error.code ?? error.message);
}

test("a port leads to the pod, whole to the last byte, by both kinds of address, until it is let go", async (t) => {
  const port = await freePort();
  const address = `${await freeAddressBlock()}.1`;
  await startEcho(t, "pod", address, port);
  const ports = await LocalhostPorts.open([{ port, address }]);
  assert.deepEqual(ports.missing, []);
  for (const host of ["127.0.0.1", "::1"]) assert.equal(await ask(host, port), "pod: hello", host);
  const kept = connect({ host: "127.0.0.1", port });
  kept.on("error", () => undefined);
  await once(kept, "connect");
  await ports[Symbol.asyncDispose]();
  await once(kept.resume(), "close");
  assert.equal(await ask("127.0.0.1", port), "ECONNREFUSED");
});

test("nobody there is told by the end of the connection", async () => {
  const port = await freePort();
  await using ports = await LocalhostPorts.open([{ port, address: `${await freeAddressBlock()}.1` }]);
  assert.deepEqual(ports.missing, []);
  assert.match(await ask("127.0.0.1", port), /^(ECONNRESET|EPIPE|)$/);
});

for (const host of ["127.0.0.1", "::1"]) {
  test(`a port of the machine stays what it is, and is told: ${host}`, async (t) => {
    const { port } = await startEcho(t, "machine", host);
    const address = `${await freeAddressBlock()}.1`;
    await startEcho(t, "pod", address, port);
    await using ports = await LocalhostPorts.open([{ port, address }]);
    assert.deepEqual(ports.missing, [{ port, address, reason: "the port is in use" }]);
    assert.equal(await ask(host, port), "machine: hello");
  });
}

test("programs of other users are not let in", async (t) => {
  if (process.getuid?.() !== 0) throw new ToolUnavailable("root", "only root may start a program as another user");
  const port = await freePort();
  const address = `${await freeAddressBlock()}.1`;
  await startEcho(t, "pod", address, port);
  await using ports = await LocalhostPorts.open([{ port, address }]);
  assert.deepEqual(ports.missing, []);
  const asking = `process.setgroups([]); process.setgid(65534); process.setuid(65534);
    const socket = require("node:net").connect(${port}, "127.0.0.1", () => console.log("connected"));
    socket.on("data", (data) => console.log(String(data))).on("error", () => {}).on("close", () => console.log("closed"));
    socket.end("hello");`;
  await using other = await startProcess(process.execPath, ["-e", asking]);
  await other.waitForOutput(/closed/);
  assert.match(other.output(), /^connected\nclosed$/m);
});
