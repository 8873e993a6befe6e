// Connections of a socket that the parent process has bound, on their way to a proxy that cannot inherit it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { Logging } from "@tulle/telemetry";
import { freePort } from "../../../tests/tools/processes.ts";
import { descriptorOf } from "./descriptor-reserve.ts";
import { WayIn } from "./way-in.ts";

const host = "127.0.0.1";
const log = new Logging({ level: "off" }).logger("agent");
const from = (port: number, client: string): Socket =>
  connect({ host, port, localAddress: client, allowHalfOpen: true });

/** A second descriptor of the same socket. */
function copyOf(descriptor: number): number {
  const definitions = { dup: { arguments: ["i32"], return: "i32" } } as const;
  const { functions } = process.getBuiltinModule("node:ffi").dlopen(null, definitions);
  return (functions as unknown as { dup(of: number): number }).dup(descriptor);
}

/** Says whom it has heard, and how much, once it has heard the end. */
async function startProxy(t: TestContext): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let heardBytes = 0;
    socket.on("data", (chunk) => void (heardBytes += chunk.length));
    socket.on("end", () => socket.end(`${socket.remoteAddress} ${heardBytes}`));
    socket.on("error", () => undefined);
  }).listen(0, host);
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** A socket that listens, and from which nobody takes anything, as often as it is wanted. */
async function published(count: number): Promise<{ readonly port: number; readonly descriptors: readonly number[] }> {
  const server = createServer().listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const descriptors = Array.from({ length: count }, () => copyOf(descriptorOf(server)));
  server.close();
  await once(server, "close");
  return { port, descriptors };
}

/** What is answered, or the code of the error. */
async function call(port: number, said: string | Buffer, localAddress = host): Promise<string> {
  const socket = connect({ host, port, localAddress, allowHalfOpen: true });
  socket.end(said);
  try {
    return (await buffer(socket)).toString();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "";
  }
}

test("both ways lead on, from the client's address, and an end of one leaves the other open", async (t) => {
  const to = await startProxy(t);
  const { port, descriptors } = await published(1);
  const early = call(port, "came before anybody took it");
  const way = new WayIn({ descriptors: new Map([[to, descriptors]]), connect: from, log });
  t.after(() => way.close());
  assert.equal(await early, "127.0.0.1 27");
  assert.equal(await call(port, Buffer.alloc(3_000_000), "127.0.0.9"), "127.0.0.9 3000000");
});

test("where nobody listens the client hears at once", async (t) => {
  const { port, descriptors } = await published(1);
  const way = new WayIn({ descriptors: new Map([[await freePort(), descriptors]]), connect: from, log });
  t.after(() => way.close());
  assert.equal(await call(port, "hello"), "ECONNRESET");
});

test("once it is closed, who comes is another one's, and who is there goes on", async (t) => {
  const to = await startProxy(t);
  const { port, descriptors } = await published(2);
  const [first, second] = descriptors.map(
    (descriptor) => () => new WayIn({ descriptors: new Map([[to, [descriptor]]]), connect: from, log }),
  );
  const leaving = first!();
  const open = connect({ host, port, allowHalfOpen: true });
  open.write("from ");
  await once(open, "connect");
  // It is taken before what comes after it.
  assert.equal(await call(port, "x"), "127.0.0.1 1");
  leaving.close();
  const waiting = call(port, "later");
  open.end("before");
  assert.equal((await buffer(open)).toString(), "127.0.0.1 11");
  const next = second!();
  t.after(() => next.close());
  assert.equal(await waiting, "127.0.0.1 5");
});
