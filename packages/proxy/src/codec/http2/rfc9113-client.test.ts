// What RFC 9113 demands of a client, section by section: each case is the first answer of a host, which breaks a rule,
// or keeps it in a way that is easily taken for breaking it. The host's next answers are sound.
import assert from "node:assert/strict";
import { test } from "node:test";
import { forwardTo, handBuiltCluster } from "../../testing/hand-built-runtime.ts";
import {
  emptySettings,
  frame,
  type Http2Peer,
  plainFields,
  runHttp2Host,
  settingFrame,
  uint32,
} from "../../testing/http2-peer.ts";
import { Client, runProxy, until } from "../../testing/running-proxy.ts";
import { defaultWindowBytes, errorCodes, frameFlags, frameTypes } from "./frame.ts";

const { endStream, endHeaders, padded, priority, ack } = frameFlags;
const { data, headers, rstStream, settings, pushPromise, ping, goAway, windowUpdate, continuation } = frameTypes;
const both = endStream | endHeaders;

type Field = readonly [name: string, value: string];

const ok: readonly Field[] = [[":status", "200"]];
const twoBytes: readonly Field[] = [...ok, ["content-length", "2"]];
const answer = (fields: readonly Field[], flags: number = both, streamId = 1): Buffer =>
  frame(headers, flags, streamId, plainFields(fields));
const text = (body: string, flags: number = endStream, streamId = 1): Buffer => frame(data, flags, streamId, body);

const reset = (code: keyof typeof errorCodes): Buffer => frame(rstStream, 0, 1, uint32(errorCodes[code]));

interface Case {
  readonly name: string;
  readonly frames: readonly Buffer[];
  /** What the host sends before anything else; default: SETTINGS. */
  readonly first?: Buffer;
  readonly method?: string;
  /** The request's body does not come to its end. */
  readonly isOpen?: boolean;
  /** What the host is told of it: nothing, a reset, or the connection's end. */
  readonly told: string;
  /** Code and flags in the access log; nothing where the request goes on. */
  readonly logged: string;
}

const answered = { told: "", logged: "200 -" };
const streamError = (code: string, logged = "502 UPE"): Pick<Case, "told" | "logged"> => ({
  told: `RST_STREAM 1 ${code}`,
  logged,
});
const connectionError = (code: string, logged = "502 UPE"): Pick<Case, "told" | "logged"> => ({
  told: `GOAWAY ${code}`,
  logged,
});

const cases: readonly Case[] = [
  { name: "3.4 a plain answer", frames: [answer(ok)], ...answered },
  {
    name: "3.4 the first frame is not SETTINGS",
    first: frame(ping, 0, 0, Buffer.alloc(8)),
    frames: [],
    ...connectionError("protocolError"),
  },
  {
    name: "3.4 a SETTINGS acknowledgement is not the first SETTINGS",
    first: frame(settings, ack, 0),
    frames: [],
    ...connectionError("protocolError"),
  },
  { name: "4.1 an unknown frame is passed over", frames: [frame(200, 0, 0, "x"), answer(ok)], ...answered },
  { name: "4.1 unknown flags are passed over", frames: [answer(ok, both | 0xd2)], ...answered },
  {
    name: "4.1 the reserved bit of a stream's id is passed over",
    frames: [answer(ok, both, 0x8000_0001)],
    ...answered,
  },
  {
    name: "4.2 a frame larger than 16384 bytes",
    frames: [answer(ok, endHeaders), frame(data, 0, 1, Buffer.alloc(16_385))],
    ...connectionError("frameSizeError", "200 UPE"),
  },
  {
    name: "4.2 padded HEADERS without the length of their padding",
    frames: [frame(headers, both | padded, 1)],
    ...connectionError("frameSizeError"),
  },
  {
    name: "4.2 HEADERS that have no place for their priority",
    frames: [frame(headers, both | priority, 1, Buffer.alloc(4))],
    ...connectionError("frameSizeError"),
  },
  {
    name: "4.2 padded DATA without the length of their padding",
    frames: [answer(ok, endHeaders), frame(data, padded, 1)],
    ...connectionError("frameSizeError", "200 UPE"),
  },
  {
    name: "4.3 fields that cannot be decoded",
    frames: [frame(headers, both, 1, Buffer.from([0x80]))],
    ...connectionError("compressionError"),
  },
  {
    name: "4.3 a section in pieces",
    frames: [
      frame(headers, endStream, 1, plainFields(ok)),
      frame(continuation, 0, 1, ""),
      frame(continuation, endHeaders, 1, plainFields([["x-a", "b"]])),
    ],
    ...answered,
  },
  {
    name: "4.3 a PING within a section",
    frames: [frame(headers, endStream, 1, plainFields(ok)), frame(ping, 0, 0, Buffer.alloc(8))],
    ...connectionError("protocolError"),
  },
  {
    name: "4.3 DATA within a section",
    frames: [frame(headers, 0, 1, plainFields(ok)), text("x")],
    ...connectionError("protocolError"),
  },
  ...[2, 3].flatMap((streamId) => [
    { name: `5.1 idle ${streamId}: DATA`, frames: [text("x", 0, streamId)], ...connectionError("protocolError") },
    {
      name: `5.1 idle ${streamId}: HEADERS`,
      frames: [answer(ok, both, streamId)],
      ...connectionError("protocolError"),
    },
    {
      name: `5.1 idle ${streamId}: RST_STREAM`,
      frames: [frame(rstStream, 0, streamId, uint32(8))],
      ...connectionError("protocolError"),
    },
    {
      name: `5.1 idle ${streamId}: WINDOW_UPDATE`,
      frames: [frame(windowUpdate, 0, streamId, uint32(8))],
      ...connectionError("protocolError"),
    },
  ]),
  {
    name: "5.1 idle: PRIORITY is let pass",
    frames: [frame(frameTypes.priority, 0, 7, Buffer.alloc(5)), answer(ok)],
    ...answered,
  },
  {
    name: "5.1, 8.1 DATA behind an answer before the request's end, which gives up the stream",
    method: "POST",
    isOpen: true,
    frames: [answer(ok), text("x")],
    ...streamError("cancel", "200 -"),
  },
  {
    name: "5.1, 8.1 HEADERS behind such an answer",
    method: "POST",
    isOpen: true,
    frames: [answer(ok), answer(ok)],
    ...streamError("cancel", "200 -"),
  },
  { name: "5.1 closed: DATA", frames: [answer(ok), text("x")], ...streamError("streamClosed", "200 -") },
  {
    name: "5.1 closed: WINDOW_UPDATE, RST_STREAM and PRIORITY are let pass",
    frames: [
      answer(ok),
      frame(windowUpdate, 0, 1, uint32(1)),
      frame(rstStream, 0, 1, uint32(0)),
      frame(frameTypes.priority, 0, 1, Buffer.alloc(5)),
    ],
    ...answered,
  },
  {
    name: "5.4.2 a reset is not answered by one",
    frames: [frame(rstStream, 0, 1, uint32(2))],
    told: "",
    logged: "503 UR",
  },
  { name: "6.1 DATA on stream 0", frames: [text("x", endStream, 0)], ...connectionError("protocolError") },
  {
    name: "6.1 padding as long as its frame",
    frames: [answer(ok, endHeaders), frame(data, endStream | padded, 1, Buffer.from([1]))],
    ...connectionError("protocolError", "200 UPE"),
  },
  {
    name: "6.1 padded data",
    frames: [answer(ok, endHeaders), frame(data, endStream | padded, 1, Buffer.from([2, 97, 0, 0]))],
    ...answered,
  },
  { name: "6.2 HEADERS on stream 0", frames: [answer(ok, both, 0)], ...connectionError("protocolError") },
  {
    name: "6.2 padded, with priority",
    frames: [
      frame(
        headers,
        both | padded | priority,
        1,
        Buffer.concat([Buffer.from([3]), Buffer.alloc(5), plainFields(ok), Buffer.alloc(3)]),
      ),
    ],
    ...answered,
  },
  {
    name: "6.2 padding longer than its frame",
    frames: [frame(headers, both | padded, 1, Buffer.from([5, 0x88]))],
    ...connectionError("protocolError"),
  },
  {
    name: "6.3 PRIORITY on stream 0",
    frames: [frame(frameTypes.priority, 0, 0, Buffer.alloc(5))],
    ...connectionError("protocolError"),
  },
  {
    name: "6.3 PRIORITY of another size",
    frames: [frame(frameTypes.priority, 0, 1, Buffer.alloc(4))],
    ...streamError("frameSizeError"),
  },
  {
    name: "6.4 RST_STREAM on stream 0",
    frames: [frame(rstStream, 0, 0, uint32(8))],
    ...connectionError("protocolError"),
  },
  {
    name: "6.4 RST_STREAM of another size",
    frames: [frame(rstStream, 0, 1, "abc")],
    ...connectionError("frameSizeError"),
  },
  { name: "6.5 SETTINGS on a stream", frames: [frame(settings, 0, 1)], ...connectionError("protocolError") },
  {
    name: "6.5 SETTINGS of a wrong size",
    frames: [frame(settings, 0, 0, "abcde")],
    ...connectionError("frameSizeError"),
  },
  {
    name: "6.5 an acknowledgement with a payload",
    frames: [frame(settings, ack, 0, "abcdef")],
    ...connectionError("frameSizeError"),
  },
  { name: "6.5.2 ENABLE_PUSH of 0", frames: [settingFrame(2, 0), answer(ok)], ...answered },
  {
    name: "6.5.2 ENABLE_PUSH of 1, which is a client's",
    frames: [settingFrame(2, 1)],
    ...connectionError("protocolError"),
  },
  { name: "6.5.2 ENABLE_PUSH of 2", frames: [settingFrame(2, 2)], ...connectionError("protocolError") },
  {
    name: "6.5.2 a window of more than 2^31-1",
    frames: [settingFrame(4, 0x8000_0000)],
    ...connectionError("flowControlError"),
  },
  { name: "6.5.2 MAX_FRAME_SIZE below 16384", frames: [settingFrame(5, 16_383)], ...connectionError("protocolError") },
  {
    name: "6.5.2 MAX_FRAME_SIZE beyond 2^24-1",
    frames: [settingFrame(5, 0x100_0000)],
    ...connectionError("protocolError"),
  },
  { name: "6.5.2 an unknown setting is passed over", frames: [settingFrame(0xf0, 1), answer(ok)], ...answered },
  {
    name: "6.6 PUSH_PROMISE that we have said we take none of",
    frames: [frame(pushPromise, endHeaders, 1, Buffer.concat([uint32(2), plainFields([[":method", "GET"]])]))],
    ...connectionError("protocolError"),
  },
  { name: "6.7 PING on a stream", frames: [frame(ping, 0, 1, Buffer.alloc(8))], ...connectionError("protocolError") },
  {
    name: "6.7 PING of another size",
    frames: [frame(ping, 0, 0, Buffer.alloc(7))],
    ...connectionError("frameSizeError"),
  },
  {
    name: "6.7 an answer to no PING is passed over",
    frames: [frame(ping, ack, 0, Buffer.alloc(8)), answer(ok)],
    ...answered,
  },
  {
    name: "6.8 GOAWAY on a stream",
    frames: [frame(goAway, 0, 1, Buffer.alloc(8))],
    ...connectionError("protocolError"),
  },
  {
    name: "6.8 GOAWAY too short",
    frames: [frame(goAway, 0, 0, Buffer.alloc(7))],
    ...connectionError("frameSizeError"),
  },
  {
    name: "6.8 GOAWAY that leaves the stream to be answered",
    frames: [frame(goAway, 0, 0, Buffer.concat([uint32(1), uint32(0), Buffer.from("why")])), answer(ok)],
    ...answered,
  },
  {
    name: "6.8 GOAWAY that leaves the stream out: the request is sent again",
    frames: [frame(goAway, 0, 0, Buffer.concat([uint32(0), uint32(0)]))],
    ...answered,
  },
  {
    name: "6.9 WINDOW_UPDATE of nothing, for the connection",
    frames: [frame(windowUpdate, 0, 0, uint32(0))],
    ...connectionError("protocolError"),
  },
  {
    name: "6.9 WINDOW_UPDATE of nothing, for a stream",
    frames: [frame(windowUpdate, 0, 1, uint32(0))],
    ...streamError("protocolError"),
  },
  {
    name: "6.9 WINDOW_UPDATE of another size",
    frames: [frame(windowUpdate, 0, 0, "abc")],
    ...connectionError("frameSizeError"),
  },
  {
    name: "6.9.1 a window beyond 2^31-1, for the connection",
    frames: [frame(windowUpdate, 0, 0, uint32(0x7fff_ffff))],
    ...connectionError("flowControlError"),
  },
  {
    name: "6.9.1 a window beyond 2^31-1, for a stream",
    frames: [frame(windowUpdate, 0, 1, uint32(0x7fff_ffff))],
    ...streamError("flowControlError"),
  },
  {
    name: "6.9.2 an initial window that makes an open one too large",
    frames: [frame(windowUpdate, 0, 1, uint32(0x7fff_0000)), settingFrame(4, 0x7fff_ffff)],
    ...connectionError("flowControlError"),
  },
  {
    name: "6.10 CONTINUATION without HEADERS",
    frames: [frame(continuation, endHeaders, 1, "")],
    ...connectionError("protocolError"),
  },
  {
    name: "6.10 CONTINUATION of another stream",
    frames: [frame(headers, endStream, 1, plainFields(ok)), frame(continuation, endHeaders, 3, "")],
    ...connectionError("protocolError"),
  },
  { name: "8.1 DATA before a head", frames: [text("x")], ...streamError("protocolError") },
  { name: "8.1 an end before a head", frames: [text("")], ...streamError("protocolError") },
  {
    name: "8.1 an informational answer and the answer",
    frames: [answer([[":status", "103"]], endHeaders), answer(ok)],
    ...answered,
  },
  {
    name: "8.1 an informational answer that ends the stream",
    frames: [answer([[":status", "103"]])],
    ...streamError("protocolError"),
  },
  {
    name: "8.1 DATA behind an informational answer",
    frames: [answer([[":status", "103"]], endHeaders), text("x")],
    ...streamError("protocolError"),
  },
  {
    name: "8.1 trailers",
    frames: [answer(ok, endHeaders), text("x", 0), answer([["x-t", "1"]])],
    ...answered,
  },
  {
    name: "8.1 a second section that does not end the stream",
    frames: [answer(ok, endHeaders), answer([["x-t", "1"]], endHeaders)],
    ...streamError("protocolError", "200 UPE"),
  },
  {
    name: "8.1 a status among trailers",
    frames: [answer(ok, endHeaders), answer(ok)],
    ...streamError("protocolError", "200 UPE"),
  },
  {
    name: "8.1 NO_ERROR behind all that was declared",
    frames: [answer(twoBytes, endHeaders), text("ab", 0), reset("noError")],
    ...answered,
  },
  {
    name: "8.1 NO_ERROR behind all that was declared, before the request's end",
    method: "POST",
    isOpen: true,
    frames: [answer(twoBytes, endHeaders), text("ab", 0), reset("noError")],
    ...answered,
  },
  {
    name: "8.1 NO_ERROR behind an answer that has no body",
    method: "HEAD",
    frames: [answer(ok, endHeaders), reset("noError")],
    ...answered,
  },
  ...[
    { name: "NO_ERROR before all that was declared", frames: [answer(twoBytes, endHeaders), text("a", 0)] },
    { name: "NO_ERROR where nothing was declared", frames: [answer(ok, endHeaders), text("ab", 0)] },
  ].map(({ name, frames }) => ({
    name: `8.1 ${name}`,
    frames: [...frames, reset("noError")],
    told: "",
    logged: "200 UR",
  })),
  {
    name: "8.1 CANCEL behind all that was declared",
    frames: [answer(twoBytes, endHeaders), text("ab", 0), reset("cancel")],
    told: "",
    logged: "200 UR",
  },
  ...[
    { name: "less than was declared", frames: [text("a")] },
    { name: "more than was declared", frames: [text("abc", 0)] },
    { name: "trailers where more was declared", frames: [answer([["x-t", "1"]])] },
  ].map(({ name, frames }) => ({
    name: `8.1.1 ${name}`,
    frames: [answer(twoBytes, endHeaders), ...frames],
    ...streamError("protocolError", "200 UPE"),
  })),
  {
    name: "8.1.1 no body where one was declared",
    frames: [answer([...ok, ["content-length", "2"]])],
    ...streamError("protocolError"),
  },
  {
    name: "8.1.1 two lengths",
    frames: [answer([...ok, ["content-length", "1"], ["content-length", "2"]], endHeaders), text("a")],
    ...streamError("protocolError"),
  },
  {
    name: "8.1.1 HEAD: a length and no body",
    method: "HEAD",
    frames: [answer([...ok, ["content-length", "2"]])],
    ...answered,
  },
  {
    name: "8.1.1 HEAD: a length, and an empty end",
    method: "HEAD",
    frames: [answer([...ok, ["content-length", "2"]], endHeaders), text("")],
    ...answered,
  },
  {
    name: "8.1.1 HEAD: a body",
    method: "HEAD",
    frames: [answer([...ok, ["content-length", "2"]], endHeaders), text("ab")],
    ...streamError("protocolError", "200 UPE"),
  },
  ...["204", "304"].map((status) => ({
    name: `8.1.1 ${status}: a body`,
    frames: [answer([[":status", status]], endHeaders), text("ab")],
    ...streamError("protocolError", `${status} UPE`),
  })),
  ...[
    { name: "8.2 an upper-case name", field: ["X-A", "1"] as const },
    { name: "8.2.1 a line feed in a value", field: ["x", "a\nb: c"] as const },
    { name: "8.2.1 a carriage return in a value", field: ["x", "a\rb"] as const },
    { name: "8.2.1 NUL in a value", field: ["x", "\0"] as const },
    { name: "8.2.1 a space before a value", field: ["x", " a"] as const },
    { name: "8.2.1 a tab behind a value", field: ["x", "a\t"] as const },
    { name: "8.2.1 a space in a name", field: ["x y", "a"] as const },
    { name: "8.2.1 a colon in a name", field: ["x:y", "a"] as const },
    { name: "8.2.1 a byte beyond ASCII in a name", field: ["x\xe9", "a"] as const },
    { name: "8.2.1 an empty name", field: ["", "a"] as const },
    { name: "8.2.2 connection", field: ["connection", "close"] as const },
    { name: "8.2.2 proxy-connection", field: ["proxy-connection", "close"] as const },
    { name: "8.2.2 keep-alive", field: ["keep-alive", "timeout=5"] as const },
    { name: "8.2.2 transfer-encoding", field: ["transfer-encoding", "chunked"] as const },
    { name: "8.2.2 upgrade", field: ["upgrade", "h2c"] as const },
    { name: "8.3 an unknown pseudo-header", field: [":a", "b"] as const },
    { name: "8.3 a request's pseudo-header", field: [":path", "/"] as const },
    { name: "8.3.2 :status twice", field: [":status", "200"] as const },
  ].map(({ name, field }) => ({ name, frames: [answer([...ok, field])], ...streamError("protocolError") })),
  {
    name: "8.3 a pseudo-header behind a field",
    frames: [answer([["x", "y"], ...ok])],
    ...streamError("protocolError"),
  },
  { name: "8.3.2 :status is missing", frames: [answer([["x", "y"]])], ...streamError("protocolError") },
  ...["20", "2000", "abc", "099", ""].map((status) => ({
    name: `8.3.2 :status of "${status}"`,
    frames: [answer([[":status", status]])],
    ...streamError("protocolError"),
  })),
  { name: "8.6 101", frames: [answer([[":status", "101"]], endHeaders)], ...streamError("protocolError") },
];

for (const { name, frames, first = emptySettings, method = "GET", isOpen = false, told, logged } of cases) {
  test(`RFC 9113 ${name}`, async (t) => {
    let requests = 0;
    const host = await runHttp2Host(t, first, (peer: Http2Peer, streamId) => {
      requests += 1;
      peer.send(...(requests === 1 ? frames : [answer(ok, both, streamId)]));
    });
    const cluster = handBuiltCluster("c", [host.port], { protocol: "HTTP/2" });
    const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
    const client = await Client.connect(t, proxy.port);
    client.send(`${method} / HTTP/1.1\r\nHost: a\r\n${isOpen ? "Content-Length: 9\r\n\r\n1234" : "\r\n"}`);
    await until(
      () => proxy.log.length > 0,
      () => `the end of the request; the host has ${host.peers[0]?.summary()}`,
    );
    assert.equal(proxy.log[0]!.split(" ").slice(0, 2).join(" "), logged);
    const peer = host.peers[0]!;
    const verdict = (): string =>
      peer
        .summary()
        .split(", ")
        .filter((line) => !line.startsWith("HEADERS") && line !== "")
        .join(", ");
    await until(
      () => verdict() === told,
      () => `${told}; the host has ${verdict()}`,
    );
    // A connection error ends the connection; anything else leaves it to further requests.
    if (told.startsWith("GOAWAY")) await peer.until(({ isClosed }) => isClosed).catch(() => undefined);
    const next = await Client.connect(t, proxy.port);
    next.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await next.receive(/^HTTP\/1\.1 200 /);
    assert.equal(peer.isClosed, told.startsWith("GOAWAY") || name.includes("GOAWAY that"));
  });
}

test("RFC 9113 6.9: many streams may wait before the connection's window is closed", async (t) => {
  const host = await runHttp2Host(t, emptySettings, (peer) => peer.send(answer(ok)));
  const cluster = handBuiltCluster("c", [host.port], { protocol: "HTTP/2" });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const client = await Client.connect(t, proxy.port);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await client.receive(/^HTTP\/1\.1 200 /);
  const [told] = host.peers[0]!.frames.filter(({ type, streamId }) => type === windowUpdate && streamId === 0);
  const connectionBytes = told!.payload.readUInt32BE(0) + defaultWindowBytes;
  assert.equal(connectionBytes, cluster.http2.initialConnectionWindowBytes);
  assert.ok(connectionBytes >= 64 * cluster.http2.initialStreamWindowBytes, String(connectionBytes));
});
