// A hostile program beside the name server: floods of questions that nobody answers, rubbish, and connections that are
// slow, silent or never read. All the while others are answered, and afterwards nothing is left.
import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { promises as dns } from "node:dns";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { connect, type Socket as StreamSocket } from "node:net";
import path from "node:path";
import { after, before, test } from "node:test";
import { startProcess, waitFor } from "../../../../tests/tools/processes.ts";
import { query } from "../testing/name-servers.ts";
import { maxInFlight, type NameServer } from "./forwarder.ts";
import { withLength } from "./length-prefixed.ts";

const program = path.join(import.meta.dirname, "../testing/attacked-name-server.ts");
const maxConnections = 128;
/** Of a process of Node with nothing to do, and some more. */
const ownDescriptors = 40;
const maxResidentBytes = 400 * 1024 * 1024;
const machine = createSocket("udp4");
const resolver = new dns.Resolver({ timeout: 2000, tries: 10 });
let server: Awaited<ReturnType<typeof startProcess>>;
let at: NameServer;

before(async () => {
  const known = query("good.example").subarray(12);
  const header = Buffer.from("81800001000100000000", "hex");
  const record = Buffer.from("c00c000100010000001e0004c0000201", "hex");
  machine.on("message", (message: Buffer, { port, address }) => {
    // What it does not know has no answer.
    if (!message.subarray(12, 12 + known.length).equals(known)) return;
    machine.send(Buffer.concat([message.subarray(0, 2), header, known, record]), port, address);
  });
  machine.bind(0, "127.0.0.1");
  await once(machine, "listening");
  server = await startProcess(process.execPath, [program, String(machine.address().port)]);
  const [, port] = await server.waitForOutput(/listening (\d+)/);
  at = { address: "127.0.0.1", port: Number(port) };
  resolver.setServers([`${at.address}:${at.port}`]);
});
after(async () => {
  machine.close();
  await server?.stop();
});

async function othersAreServed(): Promise<void> {
  assert.deepEqual(await resolver.resolve4("catalog.shop"), ["10.96.0.7"]);
  assert.deepEqual(await resolver.resolve4("good.example"), ["192.0.2.1"]);
}

async function descriptors(): Promise<number> {
  return (await readdir(`/proc/${server.pid}/fd`)).length;
}

async function holdsLittle(): Promise<void> {
  assert.ok((await descriptors()) <= maxInFlight + maxConnections + ownDescriptors);
  const status = await readFile(`/proc/${server.pid}/status`, "utf8");
  assert.ok(Number(/^VmRSS:\s+(\d+)/m.exec(status)![1]) * 1024 < maxResidentBytes, status);
}

async function leavesNothing(): Promise<void> {
  let left = 0;
  await waitFor(async () => (left = await descriptors()) <= ownDescriptors, {
    what: "all that was begun to be given up",
    details: () => `${left} descriptors`,
  });
  await othersAreServed();
}

/** Sends them in bursts; between two, others ask. */
async function flood(count: number, datagram: (index: number) => Buffer): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const socket = createSocket("udp4");
  stack.defer(() => void socket.close());
  socket.connect(at.port, at.address);
  await once(socket, "connect");
  const burst = 500;
  for (let sent = 0; sent < count; sent += burst) {
    for (let index = 0; index < burst; index += 1) await sendOne(socket, datagram(sent + index));
    if ((sent / burst) % 20 !== 0) continue;
    await othersAreServed();
    await holdsLittle();
  }
}

function sendOne(socket: Socket, datagram: Buffer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.send(datagram, () => resolve());
  return promise;
}

test("a hundred thousand names that nobody knows", async () => {
  await flood(100_000, (index) => query(`x${index}.silent.example`, index & 0xff_ff));
  await leavesNothing();
});

test("a hundred thousand questions that are none", async () => {
  const bases = [query("catalog.shop"), query("good.example"), query("_http._tcp.catalog.shop.svc.cluster.local")];
  // Numbers of a seeded generator: what fails once fails again.
  let seed = 7;
  const below = (limit: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7f_ff_ff_ff;
    return (seed >> 8) % limit;
  };
  await flood(100_000, (index) => {
    const bytes = Buffer.concat([bases[index % bases.length]!, Buffer.alloc(below(4) === 0 ? below(3000) : 0, 0xc0)]);
    for (let changes = below(6); changes > 0; changes -= 1) bytes[below(bytes.length)] = below(256);
    return bytes.subarray(0, below(3) === 0 ? below(bytes.length + 1) : bytes.length);
  });
  await leavesNothing();
});

const question = withLength(query("catalog.shop"));
const connections: readonly { readonly name: string; readonly begin: (socket: StreamSocket) => void }[] = [
  { name: "that say nothing", begin: () => undefined },
  { name: "that announce 64 KB, and send them a byte at a time", begin: (socket) => void slowly(socket) },
  {
    name: "that ask a thousand questions and read no answer",
    begin: (socket) => socket.pause().write(Buffer.concat(Array.from({ length: 1000 }, () => question))),
  },
  {
    name: "that are reset within a question",
    begin: (socket) => socket.write("\u0000", () => socket.resetAndDestroy()),
  },
];
for (const { name, begin } of connections) {
  test(`three thousand connections ${name}`, async (t) => {
    const open = new Set<StreamSocket>();
    const end = (): void => {
      for (const socket of open) socket.destroy();
    };
    t.after(end);
    for (let begun = 0; begun < 3000; begun += 1) {
      const socket = connect(at.port, at.address, () => begin(socket)).on("error", () => undefined);
      open.add(socket);
      socket.on("close", () => open.delete(socket));
      await once(socket, "connect").catch(() => undefined);
      if (begun % 500 === 0) {
        await othersAreServed();
        assert.deepEqual(await overStream(), Buffer.from([10, 96, 0, 7]));
        await holdsLittle();
      }
    }
    end();
    await leavesNothing();
  });
}

async function slowly(socket: StreamSocket): Promise<void> {
  socket.setNoDelay(true);
  socket.write(Buffer.from([0xff, 0xff]));
  for (let sent = 0; sent < 50 && !socket.destroyed; sent += 1) {
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.write("a", () => resolve());
    await promise;
  }
}

/** The last bytes of an answer: its address. */
async function overStream(): Promise<Buffer> {
  const socket = connect(at.port, at.address);
  socket.write(question);
  const [chunk] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  return chunk.subarray(-4);
}
