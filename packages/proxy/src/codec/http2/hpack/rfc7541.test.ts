// What RFC 7541 calls an error of decoding ends the connection with COMPRESSION_ERROR (RFC 9113 §4.3), whichever end
// we are; and sizes of tables, which both ends have to agree on.
import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { test } from "node:test";
import { forwardTo, handBuiltCluster } from "../../../testing/hand-built-runtime.ts";
import { emptySettings, frame, Http2Peer, plainFields, runHttp2Host } from "../../../testing/http2-peer.ts";
import { Client, runBackend, runProxy } from "../../../testing/running-proxy.ts";
import { frameFlags, frameTypes } from "../frame.ts";
import { defaultHttp2Options } from "../http2-options.ts";

const both = frameFlags.endStream | frameFlags.endHeaders;
const acknowledgement = frame(frameTypes.settings, frameFlags.ack, 0);

const undecodable = [
  { name: "2.3.3, 6.1 index 0", hex: "80" },
  { name: "2.3.3 an index beyond the tables", hex: "be" },
  { name: "2.3.3 a name's index beyond the tables", hex: "7e0161" },
  { name: "4.2 a change of size behind a field", hex: "8220" },
  { name: "5.1 an integer that is cut short", hex: "ff" },
  { name: "5.1 an integer beyond all limits", hex: "ffffffffffffffff7f" },
  { name: "5.2 a string that is cut short", hex: "400161056162" },
  { name: "5.2 EOS in a Huffman string", hex: "00016184ffffffff" },
  { name: "5.2 padding of 8 bits", hex: "00016182f8ff" },
  { name: "5.2 padding that is not of ones", hex: "000161811c" },
  { name: "6.3 a larger table than was offered", hex: "3fe21f" },
];

for (const { name, hex } of undecodable) {
  test(`RFC 7541 ${name}: as server`, async (t) => {
    const proxy = await runProxy(t, { routes: {} });
    const peer = await Http2Peer.open(proxy.port);
    t.after(() => peer.socket.destroy());
    peer.send(frame(frameTypes.headers, both, 1, Buffer.from(hex, "hex")));
    await peer.until(({ isClosed }) => isClosed);
    assert.equal(peer.summary(), "GOAWAY compressionError");
  });

  test(`RFC 7541 ${name}: as client`, async (t) => {
    const host = await runHttp2Host(t, emptySettings, (peer, streamId) =>
      peer.send(frame(frameTypes.headers, both, streamId, Buffer.from(hex, "hex"))),
    );
    const cluster = handBuiltCluster("c", [host.port], { protocol: "HTTP/2" });
    const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
    const client = await Client.connect(t, proxy.port);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.receive(/^HTTP\/1\.1 502 /);
    await host.peers[0]!.until(({ isClosed }) => isClosed);
    assert.match(host.peers[0]!.summary(), /GOAWAY compressionError$/);
  });
}

const get = plainFields([
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/"],
  [":authority", "a"],
]);
const inserted = Buffer.concat([Buffer.from([0x40]), plainFields([["x-a", "b"]]).subarray(1)]);

for (const { name, blocks, isAcknowledged, expected } of [
  {
    name: "4.2 the default holds until our smaller table is acknowledged",
    blocks: [Buffer.concat([get, inserted]), Buffer.concat([get, Buffer.from([0xbe])])],
    isAcknowledged: false,
    expected: "HEADERS 1 404, HEADERS 3 404",
  },
  {
    name: "4.2 behind the acknowledgement a change of size has to come",
    blocks: [get],
    isAcknowledged: true,
    expected: "GOAWAY compressionError",
  },
  {
    name: "4.2 the change has come",
    blocks: [Buffer.concat([Buffer.from([0x20]), get])],
    isAcknowledged: true,
    expected: "HEADERS 1 404",
  },
  {
    name: "6.3 the change is to more than we offer",
    blocks: [Buffer.concat([Buffer.from([0x21]), get])],
    isAcknowledged: true,
    expected: "GOAWAY compressionError",
  },
]) {
  test(`RFC 7541 ${name}`, async (t) => {
    const proxy = await runProxy(t, { routes: {}, config: { http2: { ...defaultHttp2Options, headerTableBytes: 0 } } });
    const peer = await Http2Peer.open(proxy.port);
    t.after(() => peer.socket.destroy());
    if (isAcknowledged) peer.send(acknowledgement);
    peer.send(...blocks.map((block, index) => frame(frameTypes.headers, both, 2 * index + 1, block)));
    await peer.until((seen) => seen.summary() === expected);
  });
}

for (const headerTableBytes of [0, 100, 4096, 65_536]) {
  test(`nghttp2's tables and ours, of ${headerTableBytes} bytes, both ways`, async (t) => {
    const server = http2.createServer({ settings: { headerTableSize: headerTableBytes } }).listen(0, "127.0.0.1");
    const sessions = new Set<http2.Http2Session>();
    server.on("session", (session) => sessions.add(session));
    server.on("stream", (stream: http2.ServerHttp2Stream, fields) => {
      stream.respond({ ":status": 200, "x-back": fields["x-there"]!, "x-same": "kept" }, { endStream: true });
    });
    await once(server, "listening");
    t.after(() => {
      server.close();
      for (const session of sessions) session.destroy();
    });
    const { port } = server.address() as { port: number };
    const http2Options = { ...defaultHttp2Options, headerTableBytes };
    const cluster = handBuiltCluster("c", [port], { protocol: "HTTP/2", http2: http2Options });
    const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) }, config: { http2: http2Options } });
    const session = http2.connect(`http://127.0.0.1:${proxy.port}`, {
      settings: { headerTableSize: headerTableBytes },
    });
    t.after(() => session.destroy());
    for (let request = 0; request < 30; request += 1) {
      const there = `${request % 7} `.repeat(1 + (request % 50)).trim();
      const stream = session.request({ ":path": "/", "x-there": there, "x-constant": "y".repeat(50) }).resume();
      const [answer] = (await once(stream, "response")) as [http2.IncomingHttpHeaders];
      assert.deepEqual([answer["x-back"], answer["x-same"]], [there, "kept"]);
    }
  });
}

test("a cookie in many pieces counts as one field", async (t) => {
  const backend = await runBackend(t, (socket) => void socket.write("HTTP/1.1 204 No Content\r\n\r\n"));
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [backend.port])) } });
  const peer = await Http2Peer.open(proxy.port);
  t.after(() => peer.socket.destroy());
  const crumbs = Array.from({ length: 300 }, (_, index) => ["cookie", `c${index}=1`] as const);
  peer.send(frame(frameTypes.headers, both, 1, Buffer.concat([get, plainFields(crumbs)])));
  await peer.until((seen) => seen.summary() === "HEADERS 1 204");
  assert.match(backend.seen[0]!, new RegExp(`cookie: ${crumbs.map(([, value]) => value).join("; ")}\r\n`));
});
