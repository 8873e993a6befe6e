// What a stream says that it took on the wire, against the bytes that were on it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HeaderMap } from "../http/header-map.ts";
import type { RequestHead } from "../http/message.ts";
import type { StreamBytes } from "../http/stream-bytes.ts";
import { FakeSocket } from "../testing/fake-socket.ts";
import { emptySettings, frame, plainFields, uint32 } from "../testing/http2-peer.ts";
import { dataPath, settings } from "../testing/http2-probe.ts";
import { type ClientCodec, openClientCodec } from "./client-codec.ts";
import { frameFlags, frameTypes, preface } from "./http2/frame.ts";
import { openServerCodec } from "./open-server-codec.ts";
import type { RequestReceiver, RequestSender, ResponseReceiver, ResponseSender } from "./stream-codec.ts";

type Counts = Readonly<Record<keyof StreamBytes, number>>;

function counted(bytes: StreamBytes): Counts {
  const { wireBytesSent, wireBytesReceived, headerBytesSent, headerBytesReceived } = bytes;
  const { decompressedHeaderBytesSent, decompressedHeaderBytesReceived } = bytes;
  return {
    wireBytesSent,
    wireBytesReceived,
    headerBytesSent,
    headerBytesReceived,
    decompressedHeaderBytesSent,
    decompressedHeaderBytesReceived,
  };
}

type Answer = (sender: ResponseSender) => void;

const ok: Answer = (sender) => sender.sendResponseHead({ status: 200, headers: new HeaderMap() }, true);

/** Answers each whole request, and gives what each stream counted when its answer was written, or when it was reset. */
function serve(protocol: "HTTP/1.1" | "HTTP/2", chunks: readonly Buffer[], answer: Answer = ok, isHeld = false) {
  const fake = new FakeSocket();
  const streams: Counts[] = [];
  const held: (() => void)[] = [];
  const newStream = (sender: ResponseSender): RequestReceiver => {
    const end = (isEnd: boolean): void => {
      if (!isEnd) return;
      if (isHeld) held.push(() => answer(sender));
      else answer(sender);
    };
    const tell = (): void => void streams.push(counted(sender.bytes));
    return {
      onRequestHead: (head, endStream) => {
        if (head.upgrade !== undefined) sender.upgradeToTunnel();
        end(endStream || head.upgrade !== undefined);
      },
      onRequestData: (_chunk, endStream) => end(endStream),
      onRequestTrailers: () => end(true),
      onDownstreamReset: tell,
      onRequestError: () => undefined,
      onResponseWritten: tell,
      onDownstreamDrained: () => undefined,
    };
  };
  const owner = {
    newStream,
    onConnectionError: () => undefined,
    onConnectionIdle: () => undefined,
    onStreamEnd: () => undefined,
    onConnectionClosed: () => undefined,
  };
  const more = { acceptHttp10: false, allowAbsoluteUrl: true };
  const codec = openServerCodec(protocol, fake.socket, owner, { ...settings, ...more }, dataPath);
  dataPath.turn.flushRound();
  fake.written = "";
  for (const chunk of chunks) {
    codec.onData(chunk);
    // Each may let the next request in.
    for (let act = held.shift(); act !== undefined; act = held.shift()) dataPath.turn.run(act);
    dataPath.turn.flushRound();
  }
  const { written } = fake;
  fake.destroy();
  return { streams, written };
}

interface Asked {
  readonly sender: RequestSender;
  readonly seen: Counts[];
}

function ask(codec: ClientCodec, send: (sender: RequestSender) => void): Asked {
  const seen: Counts[] = [];
  const end = (isEnd: boolean): void => void (isEnd && seen.push(counted(sender.bytes)));
  const receiver: ResponseReceiver = {
    onInformational: () => undefined,
    onResponseHead: (_head, endStream) => end(endStream),
    onResponseData: (_chunk, endStream) => end(endStream),
    onResponseTrailers: () => end(true),
    onUpstreamReset: () => end(true),
    onUpstreamDrained: () => undefined,
  };
  const sender = codec.open(receiver);
  dataPath.turn.run(() => send(sender));
  dataPath.turn.flushRound();
  return { sender, seen };
}

function connect(protocol: "HTTP/1.1" | "HTTP/2"): { fake: FakeSocket; codec: ClientCodec } {
  const fake = new FakeSocket();
  const owner = {
    onConnected: () => undefined,
    onStreamLimit: () => undefined,
    onStreamEnd: () => undefined,
    onClosed: () => undefined,
  };
  const codec = openClientCodec(protocol, fake.socket, owner, settings, dataPath);
  fake.emit("connect");
  dataPath.turn.flushRound();
  if (protocol === "HTTP/2") codec.onData(emptySettings);
  dataPath.turn.flushRound();
  return { fake, codec };
}

const post: RequestHead = {
  method: "POST",
  scheme: "http",
  authority: "a",
  path: "/",
  protocol: "HTTP/1.1",
  headers: new HeaderMap(["x-a", "a"]),
};

function sendWhole(sender: RequestSender): void {
  sender.sendRequestHead(post, false);
  sender.sendRequestData(Buffer.from("body"), false);
  sender.sendRequestTrailers(new HeaderMap(["x-t", "tail"]));
}

const lines = (text: string): Buffer => Buffer.from(text.replaceAll("\n", "\r\n"), "latin1");

/** Of the frames of one stream: their bytes, and those of its HEADERS and CONTINUATIONs. */
function framesOf(bytes: Buffer, streamId: number): { all: number; heads: number } {
  let [all, heads] = [0, 0];
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    if (bytes.readUInt32BE(at + 5) !== streamId) continue;
    const length = 9 + bytes.readUIntBE(at, 3);
    all += length;
    if (bytes[at + 3] === frameTypes.headers || bytes[at + 3] === frameTypes.continuation) heads += length;
  }
  return { all, heads };
}

test("HTTP/1.1: a request with trailers and its answer with trailers", () => {
  const request = lines("POST / HTTP/1.1\nhost: a\ntransfer-encoding: chunked\nx-b:  b \n\n3\none\n0\nx-t: t\n\n");
  const answer: Answer = (sender) => {
    sender.sendResponseHead({ status: 200, headers: new HeaderMap(["x-c", "c"]) }, false);
    sender.sendResponseData(Buffer.from("two"), false);
    sender.sendResponseTrailers(new HeaderMap(["x-u", "u"]));
  };
  const { streams, written } = serve("HTTP/1.1", [request.subarray(0, 30), request.subarray(30)], answer);
  const sent = "x-c: c\r\ntransfer-encoding: chunked\r\nx-u: u\r\n".length;
  const received = "host:a\r\ntransfer-encoding:chunked\r\nx-b:b\r\n".length;
  assert.deepEqual(streams, [
    {
      wireBytesSent: written.length,
      wireBytesReceived: request.length,
      headerBytesSent: sent,
      headerBytesReceived: received + "x-t:t\r\n".length,
      decompressedHeaderBytesSent: sent,
      decompressedHeaderBytesReceived: received,
    },
  ]);
});

const short = lines("GET / HTTP/1.1\nhost: a\n\n");
const long = lines("GET /longer HTTP/1.1\nhost: a\n\n");
const withBody = lines("POST / HTTP/1.1\nhost: a\ncontent-length: 4\n\nbody");

for (const isHeld of [false, true]) {
  const how = isHeld ? "answered later" : "answered at once";
  test(`HTTP/1.1: pipelined requests that are ${how} have each its own bytes`, () => {
    const { streams, written } = serve("HTTP/1.1", [Buffer.concat([short, long]), withBody], ok, isHeld);
    const received = streams.map(({ wireBytesReceived }) => wireBytesReceived);
    assert.deepEqual(received, [short.length, long.length, withBody.length]);
    const each = written.length / 3;
    assert.deepEqual(
      streams.map(({ wireBytesSent }) => wireBytesSent),
      [each, each, each],
    );
  });
}

test("HTTP/1.1: what is said before the answer counts, and so do the bytes of a tunnel", () => {
  const expecting = lines("POST / HTTP/1.1\nhost: a\nexpect: 100-continue\ncontent-length: 4\n\n");
  const first = serve("HTTP/1.1", [expecting, Buffer.from("body")]);
  assert.equal(first.streams[0]?.wireBytesSent, first.written.length);
  assert.ok(first.written.startsWith("HTTP/1.1 100"), first.written);

  const upgrade = lines("GET / HTTP/1.1\nhost: a\nconnection: upgrade\nupgrade: echo\n\nearly");
  const answer: Answer = (sender) => {
    sender.sendResponseHead({ status: 101, upgrade: "echo", headers: new HeaderMap() }, false);
    sender.sendResponseData(Buffer.from("hello"), true);
  };
  const second = serve("HTTP/1.1", [upgrade], answer);
  assert.equal(second.streams[0]?.wireBytesSent, second.written.length);
  assert.equal(second.streams[0]?.wireBytesReceived, upgrade.length);
});

test("HTTP/1.1: a request to a host, and the next one on its connection", () => {
  const { fake, codec } = connect("HTTP/1.1");
  const answer = lines("HTTP/1.1 103 Early Hints\nlink: b\n\nHTTP/1.1 200 OK\ncontent-length: 2\n\nok");
  for (let round = 0; round < 2; round += 1) {
    fake.written = "";
    const { seen } = ask(codec, sendWhole);
    codec.onData(answer);
    const sent = "host: a\r\nx-a: a\r\ntransfer-encoding: chunked\r\nx-t: tail\r\n".length;
    const received = "link:b\r\ncontent-length:2\r\n".length;
    assert.deepEqual(seen, [
      {
        wireBytesSent: fake.written.length,
        wireBytesReceived: answer.length,
        headerBytesSent: sent,
        headerBytesReceived: received,
        decompressedHeaderBytesSent: sent,
        decompressedHeaderBytesReceived: received,
      },
    ]);
  }
  fake.destroy();
});

const fields = plainFields([
  [":method", "POST"],
  [":scheme", "http"],
  [":path", "/"],
  [":authority", "a"],
]);
const fieldText = ":methodPOST:schemehttp:path/:authoritya".length;

test("HTTP/2: fields in several frames, padded data, trailers, and an answer of several frames", () => {
  const frames = [
    frame(frameTypes.headers, 0, 1, fields.subarray(0, 10)),
    frame(frameTypes.continuation, frameFlags.endHeaders, 1, fields.subarray(10)),
    frame(frameTypes.data, frameFlags.padded, 1, Buffer.from("\x03body\0\0\0", "latin1")),
    frame(frameTypes.headers, frameFlags.endHeaders | frameFlags.endStream, 1, plainFields([["x-t", "tail"]])),
  ];
  const answer: Answer = (sender) => {
    sender.sendInformational(103, new HeaderMap(["link", "b"]));
    sender.sendResponseHead({ status: 200, headers: new HeaderMap(["x-c", "c"]) }, false);
    sender.sendResponseData(Buffer.alloc(40_000), false);
    sender.sendResponseTrailers(new HeaderMap(["x-u", "u"]));
  };
  const opening = Buffer.concat([Buffer.from(preface, "latin1"), emptySettings]);
  const { streams, written } = serve("HTTP/2", [opening, ...frames], answer);
  const sent = framesOf(Buffer.from(written, "latin1"), 1);
  const received = framesOf(Buffer.concat(frames), 1);
  assert.deepEqual(streams, [
    {
      wireBytesSent: sent.all,
      wireBytesReceived: received.all,
      headerBytesSent: sent.heads,
      headerBytesReceived: received.heads,
      decompressedHeaderBytesSent: ":status103linkb:status200x-ccx-uu".length,
      decompressedHeaderBytesReceived: fieldText + "x-ttail".length,
    },
  ]);
});

const opened = Buffer.concat([
  Buffer.from(preface, "latin1"),
  emptySettings,
  frame(frameTypes.headers, frameFlags.endHeaders | frameFlags.endStream, 1, fields),
]);

test("HTTP/2: a reset counts, the client's and ours", () => {
  const reset = frame(frameTypes.rstStream, 0, 1, uint32(8));
  const byClient = serve("HTTP/2", [opened, reset], () => undefined);
  assert.equal(byClient.streams[0]?.wireBytesReceived, 9 + fields.length + reset.length);

  let counts: Counts | undefined;
  const resetting: Answer = (sender) => {
    sender.resetStream("local_reset");
    counts = counted(sender.bytes);
  };
  const { written } = serve("HTTP/2", [opened], resetting);
  assert.equal(counts?.wireBytesSent, framesOf(Buffer.from(written, "latin1"), 1).all);
});

test("HTTP/2: what waits for the client's window counts as if it had left", () => {
  let counts: Counts | undefined;
  const answer: Answer = (sender) => {
    sender.sendResponseHead({ status: 200, headers: new HeaderMap() }, false);
    sender.sendResponseData(Buffer.alloc(100_000), true);
    counts = counted(sender.bytes);
  };
  const { streams, written } = serve(
    "HTTP/2",
    [
      opened,
      frame(frameTypes.windowUpdate, 0, 0, uint32(100_000)),
      frame(frameTypes.windowUpdate, 0, 1, uint32(100_000)),
    ],
    answer,
  );
  const sent = framesOf(Buffer.from(written, "latin1"), 1);
  assert.equal(streams[0]?.wireBytesSent, sent.all);
  assert.equal(counts?.wireBytesSent, sent.all);
});

test("HTTP/2: requests to a host side by side", () => {
  const { fake, codec } = connect("HTTP/2");
  fake.written = "";
  const asked = [ask(codec, sendWhole), ask(codec, sendWhole)];
  const answers = [1, 3].map((id) => [
    frame(frameTypes.headers, frameFlags.endHeaders, id, plainFields([[":status", "200"]])),
    frame(frameTypes.data, frameFlags.endStream, id, "x".repeat(id)),
  ]);
  // One and then the other.
  for (const at of [0, 1]) for (const each of answers) codec.onData(each[at]!);
  const written = Buffer.from(fake.written, "latin1");
  for (const [index, { seen }] of asked.entries()) {
    const sent = framesOf(written, index * 2 + 1);
    const received = framesOf(Buffer.concat(answers[index]!), index * 2 + 1);
    assert.deepEqual(seen, [
      {
        wireBytesSent: sent.all,
        wireBytesReceived: received.all,
        headerBytesSent: sent.heads,
        headerBytesReceived: received.heads,
        decompressedHeaderBytesSent: fieldText + "x-aax-ttail".length,
        decompressedHeaderBytesReceived: ":status200".length,
      },
    ]);
  }
  fake.destroy();
});
