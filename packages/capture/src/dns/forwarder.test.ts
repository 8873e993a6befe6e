// Questions that are passed on: under which numbers, to whom, and what becomes of them when name servers refuse, lie,
// break off, are this server itself, or are asked far too much.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import packet from "dns-packet";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { addressAnswer, count, exchange, query, startServer, upstream } from "../testing/name-servers.ts";
import { maxInFlight, type NameServer } from "./forwarder.ts";
import { LengthPrefixed, withLength } from "./length-prefixed.ts";

const good = (message: Buffer): readonly Buffer[] => [addressAnswer(message, "192.0.2.1")];
const withCode =
  (code: number) =>
  (message: Buffer): readonly Buffer[] => {
    const answer = addressAnswer(message, "6.6.6.6");
    answer[3] = (answer[3]! & 0xf0) | code;
    return [answer];
  };
const codeOf = (answer: Buffer): number => answer[3]! & 0xf;

test("each question has a number of its own on its way, and its client's again on its way back", async (t) => {
  const { server, asked } = await upstream(t, good);
  const { at } = await startServer(t, { servers: [server] });
  for (let index = 0; index < 20; index += 1) {
    const answer = packet.decode(await exchange(t, at, query("a.example", 7)));
    assert.equal(answer.id, 7);
    assert.equal(answer.answers?.length, 1);
  }
  const numbers = new Set(asked.map((message) => message.readUInt16BE(0)));
  // Of 20 random ones two may be the same.
  assert.ok(numbers.size > 15, [...numbers].join());
});

for (const [what, code] of [
  ["fails", 2],
  ["does not know such questions", 4],
  ["refuses", 5],
] as const) {
  test(`a name server that ${what} gives way to the next, and is told of by its own answer where nobody does better`, async (t) => {
    const refusing = await upstream(t, withCode(code));
    const other = await upstream(t, good);
    const { at } = await startServer(t, { servers: [refusing.server, other.server] });
    assert.equal(codeOf(await exchange(t, at, query("a.example"))), 0);
    const alone = await startServer(t, { servers: [refusing.server], attempts: 3 });
    const before = refusing.asked.length;
    const answer = await exchange(t, alone.at, query("a.example", 9));
    assert.equal(answer.readUInt16BE(0), 9);
    assert.equal(codeOf(answer), code);
    assert.equal(refusing.asked.length, before + 1, "it is not asked again");
    assert.equal(count(alone.metrics, "dns_upstream_failures_total"), 0);
  });
}

test("that there is no such name is an answer", async (t) => {
  const first = await upstream(t, withCode(3));
  const next = await upstream(t, good);
  const { at } = await startServer(t, { servers: [first.server, next.server] });
  assert.equal(codeOf(await exchange(t, at, query("a.example"))), 3);
  assert.equal(next.asked.length, 0);
});

test("an answer from another socket than the one that was asked is passed over, whatever it says", async (t) => {
  const liar = createSocket("udp4");
  t.after(() => liar.close());
  liar.bind(0, "127.0.0.1");
  await once(liar, "listening");
  const honest = createSocket("udp4");
  t.after(() => honest.close());
  honest.on("message", (message, { port, address }) => {
    const lie = addressAnswer(message, "6.6.6.6");
    liar.send(lie, port, address, () => honest.send(addressAnswer(message, "192.0.2.1"), port, address));
  });
  honest.bind(0, "127.0.0.1");
  await once(honest, "listening");
  const { at } = await startServer(t, { servers: [{ address: "127.0.0.1", port: honest.address().port }] });
  const { answers } = packet.decode(await exchange(t, at, query("a.example")));
  assert.deepEqual(
    answers?.map((record) => "data" in record && record.data),
    ["192.0.2.1"],
  );
});

test("a name server that is this server, or leads to it, is told so and gives way to the next", async (t) => {
  const next = await upstream(t, good);
  const servers: NameServer[] = [];
  const { at, metrics } = await startServer(t, { servers: () => servers });
  servers.push(at);
  assert.equal(codeOf(await exchange(t, at, query("a.example"))), 2);
  assert.equal(count(metrics, "dns_upstream_loops_total"), 1);
  servers.push(next.server);
  assert.equal(packet.decode(await exchange(t, at, query("b.example"))).answers?.length, 1);
  assert.equal(count(metrics, "dns_upstream_loops_total"), 2);
  assert.equal(count(metrics, "dns_requests_total"), 2);
});

test("a name server that is this server is told so over TCP, too", async (t) => {
  const servers: NameServer[] = [];
  const { at, metrics } = await startServer(t, { servers: () => servers });
  servers.push(at);
  assert.equal(codeOf(await exchangeByStream(t, at, query("a.example"))), 2);
  assert.equal(count(metrics, "dns_upstream_loops_total"), 1);
});

test("the machine's name servers of now are asked", async (t) => {
  const [before, after] = [await upstream(t, good), await upstream(t, good)];
  let servers = [before.server];
  const { at } = await startServer(t, { servers: () => servers });
  await exchange(t, at, query("a.example"));
  servers = [after.server];
  await exchange(t, at, query("a.example"));
  servers = [];
  assert.equal(codeOf(await exchange(t, at, query("a.example"))), 2);
  assert.deepEqual([before.asked.length, after.asked.length], [1, 1]);
});

test("questions that nobody answers, however many, keep no other one out", async (t) => {
  const { server, asked } = await upstream(t, (message) => (message.includes("good") ? good(message) : []));
  const { at, metrics } = await startServer(t, { servers: [server], timeoutMs: 60_000 });
  const attacker = createSocket("udp4");
  t.after(() => attacker.close());
  const refused: Buffer[] = [];
  attacker.on("message", (message: Buffer) => void refused.push(message));
  // As many as a socket's buffer holds, at a time.
  for (let sent = 0; sent < maxInFlight + 100; sent += 100) {
    for (let index = 0; index < 100; index += 1) attacker.send(query(`x${sent + index}.example`), at.port, at.address);
    await waitFor(() => asked.length >= sent + 100, { what: "the questions to be passed on" });
  }
  assert.equal(packet.decode(await exchange(t, at, query("good.example"))).answers?.length, 1);
  const surplus = asked.length - maxInFlight;
  await waitFor(() => refused.length === surplus, { what: `${surplus} to have no answer` });
  assert.ok(refused.every((message) => codeOf(message) === 2));
  assert.equal(count(metrics, "dns_upstream_failures_total"), surplus);
});

for (const address of ["::1", "::ffff:127.0.0.1", "::1%lo"]) {
  test(`a name server at ${address} is asked`, async (t) => {
    const family = address.startsWith("::ffff") ? "udp4" : "udp6";
    const socket = createSocket(family);
    t.after(() => socket.close());
    socket.on("message", (message, remote) =>
      socket.send(addressAnswer(message, "192.0.2.1"), remote.port, remote.address),
    );
    socket.bind(0, family === "udp4" ? "127.0.0.1" : "::1");
    await once(socket, "listening");
    const { at } = await startServer(t, { servers: [{ address, port: socket.address().port }] });
    assert.equal(packet.decode(await exchange(t, at, query("a.example"))).answers?.length, 1);
  });
}

async function streamServer(t: TestContext, serve: (socket: Socket, message: Buffer) => void): Promise<NameServer> {
  const server = createServer((socket) => {
    const messages = new LengthPrefixed();
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      for (const message of messages.take(chunk)) serve(socket, message);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return { address: "127.0.0.1", port: (server.address() as AddressInfo).port };
}

async function exchangeByStream(t: TestContext, { address, port }: NameServer, message: Buffer): Promise<Buffer> {
  const socket = connect(port, address);
  t.after(() => socket.destroy());
  socket.write(withLength(message));
  const messages = new LengthPrefixed();
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    const [answer] = messages.take(chunk);
    if (answer !== undefined) return answer;
  }
  throw new Error("it was closed without an answer");
}

const streams: readonly {
  readonly name: string;
  readonly serve: (socket: Socket, message: Buffer) => void;
  /** Of the answer; 0 = the last server's. */
  readonly code: number;
}[] = [
  { name: "closes at once", serve: (socket) => socket.destroy(), code: 2 },
  {
    name: "closes in the middle of its answer",
    serve: (socket, message) => socket.end(withLength(addressAnswer(message, "192.0.2.1")).subarray(0, 20)),
    code: 2,
  },
  {
    name: "answers other questions first",
    serve: (socket, message) => {
      for (let other = 1; other < 200; other += 1) {
        const lie = addressAnswer(message, "6.6.6.6");
        lie.writeUInt16BE((message.readUInt16BE(0) + other) % 65_536, 0);
        socket.write(withLength(lie));
      }
      socket.write(withLength(addressAnswer(message, "192.0.2.1")));
    },
    code: 0,
  },
  {
    name: "answers with 64 KB, byte by byte at first",
    serve: (socket, message) => {
      const start = addressAnswer(message, "192.0.2.1");
      const bytes = withLength(Buffer.concat([start, Buffer.alloc(65_535 - start.length, 0xc0)]));
      socket.setNoDelay(true);
      for (const byte of bytes.subarray(0, 100)) socket.write(Buffer.of(byte));
      socket.write(bytes.subarray(100));
    },
    code: 0,
  },
];
for (const { name, serve, code } of streams) {
  test(`a name server that ${name}, over TCP: ${code === 0 ? "its answer" : "the client is told"}`, async (t) => {
    const server = await streamServer(t, serve);
    const { at } = await startServer(t, { servers: [server] });
    const answer = await exchangeByStream(t, at, query("a.example"));
    assert.equal(codeOf(answer), code);
    if (code === 0) assert.ok(answer.includes(Buffer.from([192, 0, 2, 1])));
  });
}

test("an answer may point into itself for ever: it is passed on unread", async (t) => {
  const loop = Buffer.from("c00c00010001000000000004c0000201", "hex");
  const { server } = await upstream(t, (message) => {
    const bytes = Buffer.concat([message, Buffer.from("c01d", "hex"), loop]);
    bytes[2] = 0x81;
    bytes.writeUInt16BE(1, 6);
    return [bytes];
  });
  const { at } = await startServer(t, { servers: [server] });
  assert.ok((await exchange(t, at, query("a.example"))).includes(loop));
});
