// The name server on real sockets, asked by Node's own resolver (c-ares), in front of name servers of the machine that
// answer, are silent, lie, or are not there.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import packet from "dns-packet";
import { MetricRegistry } from "@tulle/telemetry";
import { systemClock } from "@tulle/timing";
import { ManualClock } from "@tulle/timing/testing";
import { freePort } from "../../../../tests/tools/processes.ts";
import { ToolUnavailable } from "../../../../tests/tools/tool-unavailable.ts";
import {
  addressAnswer,
  count,
  exchange,
  manyAddresses,
  query,
  startServer,
  streamUpstream,
  testTable,
  upstream,
} from "../testing/name-servers.ts";
import { startDnsServer } from "./dns-server.ts";
import { LengthPrefixed, withLength } from "./length-prefixed.ts";

test("names of the mesh are answered, and nobody else hears of them", async (t) => {
  const { server, asked } = await upstream(t, () => []);
  const { resolver, metrics } = await startServer(t, { servers: [server] });
  assert.deepEqual(await resolver.resolve4("catalog.shop"), ["10.96.0.7"]);
  const [service] = await resolver.resolveSrv("_http._tcp.catalog.shop");
  assert.equal(`${service?.name}:${service?.port}`, "catalog.shop.svc.cluster.local:80");
  assert.deepEqual(await resolver.reverse("10.96.0.7"), ["catalog.shop.svc.cluster.local"]);
  await assert.rejects(resolver.resolve6("catalog.shop"), { code: "ENODATA" });
  assert.equal(asked.length, 0);
  assert.equal(count(metrics, "dns_requests_total"), 4);
  assert.equal(count(metrics, "dns_upstream_requests_total"), 0);
});

test("an answer that is too long for a datagram comes over TCP", async (t) => {
  const { resolver } = await startServer(t);
  const answers = await resolver.resolve4("many.example");
  assert.deepEqual([...answers].sort(), [...manyAddresses].sort());
});

test("every other question, and its answer, passes byte for byte", async (t) => {
  const { server, asked } = await upstream(t, (message) => [
    Buffer.concat([addressAnswer(message, "192.0.2.1"), Buffer.from("what nobody understands")]),
  ]);
  const { at } = await startServer(t, { servers: [server] });
  const odd = Buffer.concat([query("WwW.Example.org"), Buffer.from("more than a question")]);
  const answer = await exchange(t, at, odd);
  assert.deepEqual(
    asked.map((message) => message.subarray(2)),
    [odd.subarray(2)],
  );
  assert.deepEqual(answer, Buffer.concat([addressAnswer(odd, "192.0.2.1"), Buffer.from("what nobody understands")]));
});

test("what is asked over TCP is passed on over TCP, several questions on one connection in their order", async (t) => {
  const { server, asked } = await streamUpstream(t, (message) => [addressAnswer(message, "192.0.2.1")]);
  const { at } = await startServer(t, { servers: [server] });
  const socket: Socket = connect(at.port, at.address);
  t.after(() => socket.destroy());
  socket.write(Buffer.concat([withLength(query("a.example", 1)), withLength(query("catalog.shop", 2))]));
  const messages = new LengthPrefixed();
  const received: Buffer[] = [];
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    received.push(...messages.take(chunk));
    if (received.length === 2) break;
  }
  assert.deepEqual(
    received.map((message) => packet.decode(message).id),
    [1, 2],
  );
  assert.equal(asked.length, 1);
});

test("an answer that answers something else is passed over", async (t) => {
  const { server } = await upstream(t, (message) => [
    addressAnswer(query("www.example.org", (message.readUInt16BE(0) + 1) % 65_536), "6.6.6.6"),
    addressAnswer(query("www.evil.org", message.readUInt16BE(0)), "6.6.6.6"),
    Buffer.from("rubbish"),
    addressAnswer(message, "192.0.2.1"),
  ]);
  const { at } = await startServer(t, { servers: [server] });
  const answer = packet.decode(await exchange(t, at, query("www.example.org")));
  assert.deepEqual(
    answer.answers?.map((record) => "data" in record && record.data),
    ["192.0.2.1"],
  );
});

test("a name server that is silent or not there gives way to the next, which is asked first from then on", async (t) => {
  const clock = new ManualClock();
  const silent = await upstream(t, () => {
    void clock.next();
    return [];
  });
  const good = await upstream(t, (message) => [addressAnswer(message, "192.0.2.1")]);
  const nobody = { address: "127.0.0.1", port: await freePort() };
  const { at } = await startServer(t, { servers: [nobody, silent.server, good.server], clock });
  await exchange(t, at, query("a.example"));
  await exchange(t, at, query("b.example"));
  assert.equal(silent.asked.length, 1);
  assert.equal(good.asked.length, 2);
});

test("a name server that the machine has no way to gives way to the next", async (t) => {
  const good = await upstream(t, (message) => [addressAnswer(message, "192.0.2.1")]);
  // The kernel lets nobody connect to a broadcast address unasked.
  const { at } = await startServer(t, { servers: [{ address: "127.255.255.255", port: 53 }, good.server] });
  const answer = packet.decode(await exchange(t, at, query("a.example")));
  assert.equal(answer.answers?.length, 1);
});

test("a server that is closed asks nobody any more, and answers no question that waits", async (t) => {
  const silent = await upstream(t, () => []);
  const next = await upstream(t, () => []);
  const metrics = new MetricRegistry();
  const running = await startDnsServer({
    addresses: [{ address: "127.0.0.1", port: 0 }],
    names: () => testTable,
    ownDomains: [],
    forwarding: () => ({ servers: [silent.server, next.server], timeoutMs: 10_000, attempts: 1 }),
    metrics,
    clock: systemClock,
  });
  const [at] = running.addresses;
  const client = createSocket("udp4");
  t.after(() => client.close());
  client.send(query("a.example"), at!.port, at!.address);
  await once(silent.socket, "message");
  await running.close();
  // Would the next one be asked, it would be before this.
  client.send("the last", next.server.port, next.server.address);
  await once(next.socket, "message");
  assert.deepEqual(next.asked.map(String), ["the last"]);
  assert.equal(count(metrics, "dns_upstream_failures_total"), 0);
});

test("where no name server answers, the client is told, and asks anew later", async (t) => {
  let isWell = false;
  const clock = new ManualClock();
  const { server } = await upstream(t, (message) => {
    if (isWell) return [addressAnswer(message, "192.0.2.1")];
    void clock.next();
    return [];
  });
  const { at, metrics } = await startServer(t, { servers: [server], clock });
  const failed = packet.decode(await exchange(t, at, query("a.example")));
  assert.equal(failed.flags! & 0xf, 2);
  assert.equal(failed.questions?.[0]?.name, "a.example");
  assert.equal(count(metrics, "dns_upstream_failures_total"), 1);
  isWell = true;
  const answered = packet.decode(await exchange(t, at, query("a.example")));
  assert.equal(answered.answers?.length, 1);
});

test("before the control plane has sent its names, nothing is said of any", async (t) => {
  const { server, asked } = await upstream(t, (message) => [addressAnswer(message, "192.0.2.1")]);
  const { at } = await startServer(t, { servers: [server], names: undefined });
  const answer = packet.decode(await exchange(t, at, query("catalog.shop")));
  assert.equal(answer.flags! & 0xf, 2);
  assert.equal(asked.length, 0);
});

test("a version of EDNS that nobody knows is told so", async (t) => {
  const { at } = await startServer(t);
  const asked = packet.encode({
    type: "query",
    id: 7,
    questions: [{ type: "A", name: "catalog.shop" }],
    additionals: [
      {
        type: "OPT",
        name: ".",
        udpPayloadSize: 1232,
        extendedRcode: 0,
        ednsVersion: 1,
        flags: 0,
        flag_do: false,
        options: [],
      },
    ],
  });
  const answer = packet.decode(await exchange(t, at, asked));
  const [opt] = answer.additionals ?? [];
  assert.ok(opt?.type === "OPT");
  assert.equal((opt.extendedRcode << 4) | (answer.flags! & 0xf), 16);
});

test("rubbish is refused or passed over, and the next question answered", async (t) => {
  const { at, resolver } = await startServer(t);
  const socket = createSocket("udp4");
  t.after(() => socket.close());
  for (const rubbish of ["", "x", "0123456789ab", "\u0000".repeat(12)]) socket.send(rubbish, at.port, at.address);
  const stream = connect(at.port, at.address);
  t.after(() => stream.destroy());
  stream.end(Buffer.from([0, 3, 1, 2, 3, 0xff]));
  await once(stream.resume(), "close");
  assert.deepEqual(await resolver.resolve4("catalog.shop"), ["10.96.0.7"]);
});

test("a transfer of a zone is refused: it would be many answers", async (t) => {
  const { server, asked } = await upstream(t, () => []);
  const { at } = await startServer(t, { servers: [server] });
  for (const name of ["example.org", "catalog.shop"]) {
    const transfer = packet.encode({ type: "query", id: 7, questions: [{ type: "AXFR", name }] });
    const answer = packet.decode(await exchange(t, at, transfer));
    assert.equal(answer.flags! & 0xf, 5);
    assert.deepEqual(answer.questions, [{ type: "AXFR", name, class: "IN" }]);
  }
  assert.equal(asked.length, 0);
});

test("a datagram from port 0, where no answer can go, is passed over", async (t) => {
  const definitions = {
    socket: { arguments: ["i32", "i32", "i32"], return: "i32" },
    sendto: { arguments: ["i32", "buffer", "u64", "i32", "buffer", "u32"], return: "i64" },
    close: { arguments: ["i32"], return: "i32" },
  } as const;
  const { functions: calls } = process.getBuiltinModule("node:ffi").dlopen(null, definitions);
  const [inet, raw, udp] = [2, 3, 17];
  const descriptor = calls.socket(inet, raw, udp);
  if (descriptor < 0) throw new ToolUnavailable("a raw socket", "only root may open one; run this test as root");
  t.after(() => calls.close(descriptor));
  const { at, resolver, metrics } = await startServer(t);
  const question = query("catalog.shop");
  const header = Buffer.alloc(8);
  header.writeUInt16BE(at.port, 2);
  header.writeUInt16BE(header.length + question.length, 4);
  const datagram = Buffer.concat([header, question]);
  const to = Buffer.from([inet, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
  assert.equal(Number(calls.sendto(descriptor, datagram, BigInt(datagram.length), 0, to, to.length)), datagram.length);
  assert.deepEqual(await resolver.resolve4("catalog.shop"), ["10.96.0.7"]);
  assert.equal(count(metrics, "dns_requests_total"), 1);
});

test("connections that ask nothing keep nobody out", async (t) => {
  const { at } = await startServer(t);
  const idle = Array.from({ length: 300 }, () => connect(at.port, at.address).on("error", () => undefined));
  t.after(() => {
    for (const socket of idle) socket.destroy();
  });
  const socket = connect(at.port, at.address);
  t.after(() => socket.destroy());
  socket.write(withLength(query("catalog.shop")));
  const [chunk] = (await once(socket, "data")) as [Buffer];
  const [message] = new LengthPrefixed().take(chunk);
  assert.equal(packet.decode(message!).answers?.length, 1);
});

test("an address that is taken fails the start, and leaves nothing", async (t) => {
  const { at } = await startServer(t);
  const again = startDnsServer({
    addresses: [{ address: "127.0.0.1", port: 0 }, at],
    names: () => testTable,
    ownDomains: [],
    forwarding: () => ({ servers: [], timeoutMs: 1000, attempts: 1 }),
    metrics: new MetricRegistry(),
    clock: systemClock,
  });
  await assert.rejects(again, { code: "EADDRINUSE" });
});

test("an address that a machine may lack is left out there, and the others answer", async (t) => {
  const lacks = { address: "192.0.2.53", port: 53 };
  const startWith = (more: { mayLack?: true }): ReturnType<typeof startDnsServer> =>
    startDnsServer({
      addresses: [
        { ...lacks, ...more },
        { address: "127.0.0.1", port: 0 },
      ],
      names: () => testTable,
      ownDomains: [],
      forwarding: () => ({ servers: [], timeoutMs: 1000, attempts: 1 }),
      metrics: new MetricRegistry(),
      clock: systemClock,
    });
  await assert.rejects(startWith({}), { code: "EADDRNOTAVAIL" });
  const running = await startWith({ mayLack: true });
  t.after(() => running.close());
  assert.deepEqual(
    running.addresses.map(({ address }) => address),
    ["127.0.0.1"],
  );
});
