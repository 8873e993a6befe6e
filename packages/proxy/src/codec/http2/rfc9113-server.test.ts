// What RFC 9113 demands of a server, section by section: each case is one connection of a client that breaks a rule, or
// keeps it in a way that is easily taken for breaking it.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { forwardTo, handBuiltCluster } from "../../testing/hand-built-runtime.ts";
import { emptySettings, frame, Http2Peer, plainFields, settingFrame, uint32 } from "../../testing/http2-peer.ts";
import { runBackend, runProxy } from "../../testing/running-proxy.ts";
import { frameFlags, frameTypes, preface } from "./frame.ts";
import { defaultHttp2Options } from "./http2-options.ts";

const { endStream, endHeaders, padded, priority, ack } = frameFlags;
const { data, headers, rstStream, settings, pushPromise, ping, goAway, windowUpdate, continuation } = frameTypes;
const both = endStream | endHeaders;

type Field = readonly [name: string, value: string];

const get: readonly Field[] = [
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/"],
  [":authority", "a"],
];
const post: readonly Field[] = [[":method", "POST"], ...get.slice(1)];
const without = (name: string): readonly Field[] => get.filter(([field]) => field !== name);
const replaced = (name: string, value: string): readonly Field[] =>
  get.map(([field, old]) => [field, field === name ? value : old]);

const request = (fields: readonly Field[], streamId = 1, flags: number = both): Buffer =>
  frame(headers, flags, streamId, plainFields(fields));

interface Case {
  readonly name: string;
  readonly frames: readonly Buffer[];
  /** Before them nothing of its own is sent: no preface, no SETTINGS. */
  readonly isRaw?: boolean;
  readonly expected: string;
}

const answered = "HEADERS 1 200";
const streamError = (code: string, streamId = 1): string => `RST_STREAM ${streamId} ${code}`;
const connectionError = (code: string): string => `GOAWAY ${code}`;

const cases: readonly Case[] = [
  { name: "3.4 a plain request", frames: [request(get)], expected: answered },
  {
    name: "3.4 another preface",
    isRaw: true,
    frames: [Buffer.from("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n")],
    expected: connectionError("protocolError"),
  },
  {
    name: "3.4 the first frame is not SETTINGS",
    isRaw: true,
    frames: [Buffer.from(preface), request(get)],
    expected: connectionError("protocolError"),
  },
  {
    name: "3.4 a SETTINGS acknowledgement is not the first SETTINGS",
    isRaw: true,
    frames: [Buffer.from(preface), frame(settings, ack, 0)],
    expected: connectionError("protocolError"),
  },
  { name: "4.1 an unknown frame is passed over", frames: [frame(200, 0, 0, "x"), request(get)], expected: answered },
  {
    name: "4.1 unknown flags are passed over",
    frames: [frame(headers, both | (0xd2 & ~padded & ~priority), 1, plainFields(get))],
    expected: answered,
  },
  {
    name: "4.1 the reserved bit of a stream's id is passed over",
    frames: [frame(headers, both, 0x8000_0001, plainFields(get))],
    expected: answered,
  },
  {
    name: "4.2 a frame larger than 16384 bytes",
    frames: [request(post, 1, endHeaders), frame(data, 0, 1, Buffer.alloc(16_385))],
    expected: connectionError("frameSizeError"),
  },
  {
    name: "4.2 padded HEADERS without the length of their padding",
    frames: [frame(headers, both | padded, 1)],
    expected: connectionError("frameSizeError"),
  },
  {
    name: "4.2 HEADERS that have no place for their priority",
    frames: [frame(headers, both | priority, 1, Buffer.alloc(4))],
    expected: connectionError("frameSizeError"),
  },
  {
    name: "4.2 padded DATA without the length of their padding",
    frames: [request(post, 1, endHeaders), frame(data, padded, 1)],
    expected: connectionError("frameSizeError"),
  },
  {
    name: "4.3 fields that cannot be decoded",
    frames: [frame(headers, both, 1, Buffer.from([0x80]))],
    expected: connectionError("compressionError"),
  },
  { name: "4.3 a section in pieces", frames: inPieces(get), expected: answered },
  {
    name: "4.3 another stream's frame within a section",
    frames: [frame(headers, endStream, 1, plainFields(get)), request(get, 3)],
    expected: connectionError("protocolError"),
  },
  {
    name: "4.3 DATA within a section",
    frames: [frame(headers, 0, 1, plainFields(get)), frame(data, 0, 1, "x")],
    expected: connectionError("protocolError"),
  },
  {
    name: "4.3 an unknown frame within a section",
    frames: [frame(headers, endStream, 1, plainFields(get)), frame(200, 0, 0)],
    expected: connectionError("protocolError"),
  },
  { name: "5.1 idle: DATA", frames: [frame(data, endStream, 1, "x")], expected: connectionError("protocolError") },
  {
    name: "5.1 idle: RST_STREAM",
    frames: [frame(rstStream, 0, 1, uint32(8))],
    expected: connectionError("protocolError"),
  },
  {
    name: "5.1 idle: WINDOW_UPDATE",
    frames: [frame(windowUpdate, 0, 1, uint32(8))],
    expected: connectionError("protocolError"),
  },
  {
    name: "5.1 idle: PRIORITY is let pass",
    frames: [frame(2, 0, 7, Buffer.alloc(5)), request(get)],
    expected: answered,
  },
  {
    name: "5.1 half-closed: DATA behind the end",
    frames: [request(post), frame(data, endStream, 1, "x")],
    expected: streamError("streamClosed"),
  },
  {
    name: "5.1 half-closed: HEADERS behind the end",
    frames: [request(post), request(post)],
    expected: streamError("streamClosed"),
  },
  {
    name: "5.1 closed by the client: WINDOW_UPDATE and RST_STREAM are let pass",
    frames: [
      request(post, 1, endHeaders),
      frame(rstStream, 0, 1, uint32(8)),
      frame(windowUpdate, 0, 1, uint32(1)),
      frame(rstStream, 0, 1, uint32(8)),
      request(get, 3),
    ],
    expected: "HEADERS 3 200",
  },
  ...[
    { name: "DATA", late: frame(data, endStream, 1, "x") },
    { name: "HEADERS that end it", late: request([["x", "y"]]) },
  ].map(({ name, late }) => ({
    name: `5.1 closed by us: ${name} is let pass`,
    frames: [request(post, 1, endHeaders), frame(windowUpdate, 0, 1, uint32(0)), late, request(get, 3)],
    expected: "RST_STREAM 1 protocolError, HEADERS 3 200",
  })),
  { name: "5.1.1 an even number", frames: [request(get, 2)], expected: connectionError("protocolError") },
  {
    name: "5.1.1 a number lower than one before",
    frames: [request(get, 3), request(get, 1)],
    expected: connectionError("protocolError"),
  },
  {
    name: "5.3.1 a stream that depends on itself",
    frames: [frame(headers, both | priority, 1, Buffer.concat([uint32(1), Buffer.from([0]), plainFields(get)]))],
    expected: connectionError("protocolError"),
  },
  {
    name: "6.1 DATA on stream 0",
    frames: [frame(data, endStream, 0, "x")],
    expected: connectionError("protocolError"),
  },
  {
    name: "6.1 padding as long as its frame",
    frames: [request(post, 1, endHeaders), frame(data, endStream | padded, 1, Buffer.from([1]))],
    expected: connectionError("protocolError"),
  },
  {
    name: "6.1 padded data",
    frames: [request(post, 1, endHeaders), frame(data, endStream | padded, 1, Buffer.from([2, 97, 0, 0]))],
    expected: answered,
  },
  { name: "6.2 HEADERS on stream 0", frames: [request(get, 0)], expected: connectionError("protocolError") },
  {
    name: "6.2 padded, with priority",
    frames: [
      frame(
        headers,
        both | padded | priority,
        1,
        Buffer.concat([Buffer.from([3]), Buffer.alloc(5), plainFields(get), Buffer.alloc(3)]),
      ),
    ],
    expected: answered,
  },
  {
    name: "6.2 padding longer than its frame",
    frames: [frame(headers, both | padded, 1, Buffer.from([5, 0x82]))],
    expected: connectionError("protocolError"),
  },
  {
    name: "6.3 PRIORITY on stream 0",
    frames: [frame(2, 0, 0, Buffer.alloc(5))],
    expected: connectionError("protocolError"),
  },
  {
    name: "6.3 PRIORITY of another size",
    frames: [request(post, 1, endHeaders), frame(2, 0, 1, Buffer.alloc(4))],
    expected: streamError("frameSizeError"),
  },
  {
    name: "6.4 RST_STREAM on stream 0",
    frames: [frame(rstStream, 0, 0, uint32(8))],
    expected: connectionError("protocolError"),
  },
  {
    name: "6.4 RST_STREAM of another size",
    frames: [request(post, 1, endHeaders), frame(rstStream, 0, 1, "abc")],
    expected: connectionError("frameSizeError"),
  },
  { name: "6.5 SETTINGS on a stream", frames: [frame(settings, 0, 1)], expected: connectionError("protocolError") },
  {
    name: "6.5 SETTINGS of a wrong size",
    frames: [frame(settings, 0, 0, "abcde")],
    expected: connectionError("frameSizeError"),
  },
  {
    name: "6.5 an acknowledgement with a payload",
    frames: [frame(settings, ack, 0, "abcdef")],
    expected: connectionError("frameSizeError"),
  },
  { name: "6.5.2 ENABLE_PUSH of 2", frames: [settingFrame(2, 2)], expected: connectionError("protocolError") },
  {
    name: "6.5.2 a window of more than 2^31-1",
    frames: [settingFrame(4, 0x8000_0000)],
    expected: connectionError("flowControlError"),
  },
  {
    name: "6.5.2 MAX_FRAME_SIZE below 16384",
    frames: [settingFrame(5, 16_383)],
    expected: connectionError("protocolError"),
  },
  {
    name: "6.5.2 MAX_FRAME_SIZE beyond 2^24-1",
    frames: [settingFrame(5, 0x100_0000)],
    expected: connectionError("protocolError"),
  },
  {
    name: "6.5.2 an unknown setting is passed over",
    frames: [settingFrame(0xf0, 1), request(get)],
    expected: answered,
  },
  {
    name: "6.6 PUSH_PROMISE of a client",
    frames: [frame(pushPromise, endHeaders, 1, uint32(2))],
    expected: connectionError("protocolError"),
  },
  {
    name: "6.7 PING on a stream",
    frames: [frame(ping, 0, 1, Buffer.alloc(8))],
    expected: connectionError("protocolError"),
  },
  {
    name: "6.7 PING of another size",
    frames: [frame(ping, 0, 0, Buffer.alloc(7))],
    expected: connectionError("frameSizeError"),
  },
  {
    name: "6.8 GOAWAY on a stream",
    frames: [frame(goAway, 0, 1, Buffer.alloc(8))],
    expected: connectionError("protocolError"),
  },
  {
    name: "6.8 GOAWAY too short",
    frames: [frame(goAway, 0, 0, Buffer.alloc(7))],
    expected: connectionError("frameSizeError"),
  },
  {
    name: "6.9 WINDOW_UPDATE of nothing, for the connection",
    frames: [frame(windowUpdate, 0, 0, uint32(0))],
    expected: connectionError("protocolError"),
  },
  {
    name: "6.9 WINDOW_UPDATE of nothing, for a stream",
    frames: [request(post, 1, endHeaders), frame(windowUpdate, 0, 1, uint32(0))],
    expected: streamError("protocolError"),
  },
  {
    name: "6.9 WINDOW_UPDATE of another size",
    frames: [frame(windowUpdate, 0, 0, "abc")],
    expected: connectionError("frameSizeError"),
  },
  {
    name: "6.9.1 a window beyond 2^31-1, for the connection",
    frames: [frame(windowUpdate, 0, 0, uint32(0x7fff_ffff))],
    expected: connectionError("flowControlError"),
  },
  {
    name: "6.9.1 a window beyond 2^31-1, for a stream",
    frames: [request(post, 1, endHeaders), frame(windowUpdate, 0, 1, uint32(0x7fff_ffff))],
    expected: streamError("flowControlError"),
  },
  {
    name: "6.9.2 an initial window that makes an open one too large",
    frames: [
      request(post, 1, endHeaders),
      frame(windowUpdate, 0, 1, uint32(0x7fff_0000)),
      settingFrame(4, 0x7fff_ffff),
    ],
    expected: connectionError("flowControlError"),
  },
  {
    name: "6.10 CONTINUATION without HEADERS",
    frames: [frame(continuation, endHeaders, 1, "")],
    expected: connectionError("protocolError"),
  },
  {
    name: "6.10 CONTINUATION behind a whole section",
    frames: [request(post, 1, endHeaders), frame(continuation, endHeaders, 1, plainFields([["a", "b"]]))],
    expected: connectionError("protocolError"),
  },
  { name: "8.1 trailers", frames: [request(post, 1, endHeaders), request([["x-t", "1"]])], expected: answered },
  {
    name: "8.1 a second section that does not end the stream",
    frames: [request(post, 1, endHeaders), request([["x-t", "1"]], 1, endHeaders)],
    expected: streamError("protocolError"),
  },
  {
    name: "8.1 a pseudo-header among trailers",
    frames: [request(post, 1, endHeaders), request([[":path", "/b"]])],
    expected: streamError("protocolError"),
  },
  ...["content-length", "host"].map((name) => ({
    name: `8.1 ${name} among trailers (RFC 9110, 6.5.1)`,
    frames: [request(post, 1, endHeaders), request([[name, "0"]])],
    expected: streamError("protocolError"),
  })),
  {
    name: "8.1.1 less than was declared",
    frames: [request([...post, ["content-length", "2"]], 1, endHeaders), frame(data, endStream, 1, "a")],
    expected: streamError("protocolError"),
  },
  {
    name: "8.1.1 more than was declared",
    frames: [request([...post, ["content-length", "2"]], 1, endHeaders), frame(data, 0, 1, "abc")],
    expected: streamError("protocolError"),
  },
  {
    name: "8.1.1 no body where one was declared",
    frames: [request([...post, ["content-length", "2"]])],
    expected: streamError("protocolError"),
  },
  {
    name: "8.1.1 trailers where more was declared",
    frames: [request([...post, ["content-length", "2"]], 1, endHeaders), request([["x-t", "1"]])],
    expected: streamError("protocolError"),
  },
  { name: "8.2 an upper-case name", frames: [request([...get, ["X-A", "1"]])], expected: streamError("protocolError") },
  {
    name: "8.2.1 a line feed in a value",
    frames: [request([...get, ["x", "a\nb: c"]])],
    expected: streamError("protocolError"),
  },
  {
    name: "8.2.1 a carriage return in a value",
    frames: [request([...get, ["x", "a\rb"]])],
    expected: streamError("protocolError"),
  },
  { name: "8.2.1 NUL in a value", frames: [request([...get, ["x", "\0"]])], expected: streamError("protocolError") },
  {
    name: "8.2.1 a space before a value",
    frames: [request([...get, ["x", " a"]])],
    expected: streamError("protocolError"),
  },
  {
    name: "8.2.1 a space in a name",
    frames: [request([...get, ["x y", "a"]])],
    expected: streamError("protocolError"),
  },
  {
    name: "8.2.1 a colon in a name",
    frames: [request([...get, ["x:y", "a"]])],
    expected: streamError("protocolError"),
  },
  ...["x\xe9", "x\x7f", "x\0", "x\r\nb", "(x)"].map((name) => ({
    name: `8.2.1 a name of ${JSON.stringify(name)}`,
    frames: [request([...get, [name, "a"]])],
    expected: streamError("protocolError"),
  })),
  {
    name: "8.2.1 a tab behind a value",
    frames: [request([...get, ["x", "a\t"]])],
    expected: streamError("protocolError"),
  },
  { name: "8.2.1 an empty name", frames: [request([...get, ["", "a"]])], expected: streamError("protocolError") },
  ...["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"].map((name) => ({
    name: `8.2.2 ${name}`,
    frames: [request([...get, [name, "close"]])],
    expected: streamError("protocolError"),
  })),
  { name: "8.2.2 te: gzip", frames: [request([...get, ["te", "gzip"]])], expected: streamError("protocolError") },
  { name: "8.2.2 te: trailers", frames: [request([...get, ["te", "trailers"]])], expected: answered },
  {
    name: "8.3 an unknown pseudo-header",
    frames: [request([...get, [":a", "b"]])],
    expected: streamError("protocolError"),
  },
  {
    name: "8.3 a response's pseudo-header",
    frames: [request([...get, [":status", "200"]])],
    expected: streamError("protocolError"),
  },
  {
    name: "8.3 a pseudo-header behind a field",
    frames: [request([["x", "y"], ...get])],
    expected: streamError("protocolError"),
  },
  ...[":method", ":scheme", ":path", ":authority"].map((name) => ({
    name: `8.3.1 ${name} twice`,
    frames: [request([...get, get.find(([field]) => field === name)!])],
    expected: streamError("protocolError"),
  })),
  ...[":method", ":scheme", ":path"].map((name) => ({
    name: `8.3.1 ${name} is missing`,
    frames: [request(without(name))],
    expected: streamError("protocolError"),
  })),
  { name: "8.3.1 an empty path", frames: [request(replaced(":path", ""))], expected: streamError("protocolError") },
  {
    name: "8.3.1 a path without a slash",
    frames: [request(replaced(":path", "a"))],
    expected: streamError("protocolError"),
  },
  ...[
    ["/a b", ":path"],
    ["/\xe9", ":path"],
    ["/a\tb", ":path"],
    ["G T", ":method"],
    ["", ":method"],
    ["ht tp", ":scheme"],
    ["a b", ":authority"],
    ["a/b", ":authority"],
    ["a%00", ":authority"],
  ].map(([value, name]) => ({
    name: `8.3.1 ${name} of ${JSON.stringify(value)}`,
    frames: [request(replaced(name!, value!))],
    expected: streamError("protocolError"),
  })),
  {
    name: "8.3.1 * that is not for OPTIONS",
    frames: [request(replaced(":path", "*"))],
    expected: streamError("protocolError"),
  },
  {
    name: "8.3.1 user information in the authority",
    frames: [request(replaced(":authority", "me@a"))],
    expected: streamError("protocolError"),
  },
  {
    name: "8.3.1 Host in the place of :authority",
    frames: [request([...without(":authority"), ["host", "a"]])],
    expected: answered,
  },
  { name: "8.3.1 Host that says the same", frames: [request([...get, ["host", "A"]])], expected: answered },
  {
    name: "8.3.1 Host that says another thing",
    frames: [request([...get, ["host", "b"]])],
    expected: streamError("protocolError"),
  },
  { name: "8.3.1 no authority at all", frames: [request(without(":authority"))], expected: "HEADERS 1 400" },
  {
    name: "8.5 CONNECT with a path",
    frames: [
      request(
        [
          [":method", "CONNECT"],
          [":path", "/"],
          [":authority", "a:1"],
        ],
        1,
        endHeaders,
      ),
    ],
    expected: streamError("protocolError"),
  },
  {
    name: "8.5 CONNECT with a scheme",
    frames: [
      request(
        [
          [":method", "CONNECT"],
          [":scheme", "http"],
          [":authority", "a:1"],
        ],
        1,
        endHeaders,
      ),
    ],
    expected: streamError("protocolError"),
  },
  {
    name: "8.5 CONNECT without an authority",
    frames: [request([[":method", "CONNECT"]], 1, endHeaders)],
    expected: streamError("protocolError"),
  },
  {
    name: "RFC 8441, 3 extended CONNECT that was not offered",
    frames: [request([[":method", "CONNECT"], ...get.slice(1), [":protocol", "websocket"]], 1, endHeaders)],
    expected: streamError("protocolError"),
  },
];

function inPieces(fields: readonly Field[]): readonly Buffer[] {
  const block = plainFields(fields);
  const third = Math.ceil(block.length / 3);
  return [
    frame(headers, endStream, 1, block.subarray(0, third)),
    frame(continuation, 0, 1, block.subarray(third, 2 * third)),
    frame(continuation, endHeaders, 1, block.subarray(2 * third)),
  ];
}

for (const { name, frames, isRaw = false, expected } of cases) {
  test(`RFC 9113 ${name}`, async (t) => {
    const backend = await runBackend(t, (socket) => void socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [backend.port])) } });
    const peer = isRaw ? await Http2Peer.connect(proxy.port) : await Http2Peer.open(proxy.port, emptySettings);
    t.after(() => peer.socket.destroy());
    peer.send(...frames);
    await peer.until((seen) => seen.summary().includes(expected));
    if (!expected.startsWith("HEADERS")) assert.ok(!peer.summary().includes("HEADERS 1 200"), peer.summary());
    // A connection error ends the connection; anything else leaves it to further requests.
    if (expected.startsWith("GOAWAY")) {
      await peer.until(({ isClosed }) => isClosed).catch(() => undefined);
      assert.equal(peer.isClosed, true);
    } else {
      peer.send(request(get, 101));
      await peer.until((seen) => seen.summary().includes("HEADERS 101 200"));
    }
  });
}

async function openPeer(t: TestContext, first: Buffer = emptySettings, backend = 200): Promise<Http2Peer> {
  const { port } = await runBackend(t, (socket) => {
    socket.write(`HTTP/1.1 ${backend} X\r\ncontent-length: 10\r\n\r\n0123456789`);
  });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [port])) } });
  const peer = await Http2Peer.open(proxy.port, first);
  t.after(() => peer.socket.destroy());
  return peer;
}

const typesSeen = (peer: Http2Peer, ...types: readonly number[]): readonly string[] =>
  peer.frames
    .filter(({ type }) => types.includes(type))
    .map(({ type, flags, streamId, payload }) => `${type} ${flags} ${streamId} ${payload.toString("latin1")}`);

test("RFC 9113 6.5.3, 6.7: each SETTINGS and PING is answered, in order", async (t) => {
  const peer = await openPeer(t);
  peer.send(frame(ping, 0, 0, "12345678"), settingFrame(3, 7), frame(ping, 0, 0, "abcdefgh"));
  await peer.until(({ frames }) => frames.some(({ payload }) => payload.toString() === "abcdefgh"));
  assert.deepEqual(typesSeen(peer, settings, ping).slice(1), [
    `${settings} ${ack} 0 `,
    `${ping} ${ack} 0 12345678`,
    `${settings} ${ack} 0 `,
    `${ping} ${ack} 0 abcdefgh`,
  ]);
});

test("RFC 9113 5.4.2: a reset is not answered by one", async (t) => {
  const peer = await openPeer(t);
  peer.send(request(post, 1, endHeaders), frame(rstStream, 0, 1, uint32(2)), request(get, 3));
  await peer.until((seen) => seen.summary().includes("HEADERS 3 200"));
  assert.ok(!peer.summary().includes("RST_STREAM"), peer.summary());
});

test("RFC 9113 6.9, 6.9.2: no byte leaves beyond a window, which may fall below nothing", async (t) => {
  const peer = await openPeer(t, settingFrame(4, 4));
  const sent = (): string =>
    peer.frames
      .filter(({ type }) => type === data)
      .map(({ payload, flags }) => `${payload.toString()}${flags === endStream ? "." : ""}`)
      .join("|");
  const pinged = async (mark: string): Promise<void> => {
    peer.send(frame(ping, 0, 0, mark.padEnd(8)));
    await peer.until(({ frames }) => frames.some(({ payload }) => payload.toString() === mark.padEnd(8)));
  };
  peer.send(request(get));
  await peer.until(() => sent() === "0123");
  peer.send(settingFrame(4, 1), frame(windowUpdate, 0, 1, uint32(3)));
  await pinged("nothing");
  assert.equal(sent(), "0123");
  peer.send(frame(windowUpdate, 0, 1, uint32(2)));
  await peer.until(() => sent() === "0123|45");
  peer.send(settingFrame(4, 100));
  await peer.until(() => sent() === "0123|45|6789.");
});

test("RFC 9113 5.1.2: streams beyond what was told are refused, the others go on", async (t) => {
  const { port } = await runBackend(t, () => undefined);
  const http2 = { ...defaultHttp2Options, maxConcurrentStreams: 2 };
  const proxy = await runProxy(t, {
    routes: { "/": forwardTo(handBuiltCluster("c", [port])) },
    config: { http2 },
  });
  const peer = await Http2Peer.open(proxy.port);
  t.after(() => peer.socket.destroy());
  peer.send(request(get, 1), request(get, 3), request(get, 5), frame(rstStream, 0, 1, uint32(8)), request(get, 7));
  peer.send(request(get, 9));
  await peer.until((seen) => seen.summary().includes("RST_STREAM 9"));
  assert.equal(peer.summary(), "RST_STREAM 5 refusedStream, RST_STREAM 9 refusedStream");
});

test("RFC 9113 8.1: who is answered before its body has ended is told to stop, without blame", async (t) => {
  const peer = await openPeer(t, emptySettings, 403);
  peer.send(request(post, 1, endHeaders));
  await peer.until((seen) => seen.summary().includes("RST_STREAM"));
  assert.equal(peer.summary(), "HEADERS 1 403, RST_STREAM 1 noError");
});
