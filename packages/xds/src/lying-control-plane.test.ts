// Control planes that break gRPC, HTTP/2 or xDS itself, at once and after an honest answer: the client says what came, keeps what it has,
// and comes back, once, after its pause.
import assert from "node:assert/strict";
import http2 from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { waitFor } from "../../../tests/tools/processes.ts";
import { connectAds } from "./ads-client.ts";
import { ClusterSchema } from "./generated/envoy/config/cluster/v3/cluster_pb.ts";
import { NodeSchema } from "./generated/envoy/config/core/v3/base_pb.ts";
import { resourceType } from "./resource-types.ts";
import { encodeResponse } from "./wire.ts";

const grpc = { ":status": 200, "content-type": "application/grpc" };
const clusters = resourceType("CDS").typeUrl;

/** A gRPC message's bytes: not compressed, its length, itself (gRPC over HTTP/2, "Length-Prefixed-Message"). */
function framed(bytes: Uint8Array, announcedBytes = bytes.length, compressed = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(compressed);
  prefix.writeUInt32BE(announcedBytes, 1);
  return Buffer.concat([prefix, bytes]);
}

const clusterNamed = (name: string) => anyPack(ClusterSchema, create(ClusterSchema, { name }));

function response(changes: Partial<Parameters<typeof encodeResponse>[0]> = {}): Uint8Array {
  return encodeResponse({
    typeUrl: clusters,
    versionInfo: "1",
    nonce: "n",
    resources: [clusterNamed("honest")],
    ...changes,
  });
}

interface Lie {
  readonly name: string;
  /** On the first connection's stream, which has its headers already if the lie comes after an honest answer. */
  readonly tell: (stream: http2.ServerHttp2Stream, isAnswered: boolean) => void;
  /** What the client says of it. */
  readonly reason: RegExp;
}

/** Ends the stream with a status: in its trailers, or alone. */
function endWith(stream: http2.ServerHttp2Stream, isAnswered: boolean, status: string): void {
  const end = { "grpc-status": status, "grpc-message": "no" };
  if (!isAnswered) {
    stream.respond({ ...grpc, ...end }, { endStream: true });
    return;
  }
  stream.once("wantTrailers", () => stream.sendTrailers(end));
  stream.end();
}

/** Something where the honest answer would be, or after it. */
function write(stream: http2.ServerHttp2Stream, isAnswered: boolean, bytes: Uint8Array): void {
  if (!isAnswered) stream.respond(grpc);
  stream.write(bytes);
}

const statuses: readonly Lie[] = Array.from({ length: 18 }, (_, status) => ({
  name: `status ${status}`,
  tell: (stream, isAnswered) => endWith(stream, isAnswered, String(status)),
  reason: status === 0 ? /the server ended the stream/ : status < 17 ? new RegExp(`^${status} [A-Z_]+: no`) : /./,
}));

const session = (stream: http2.ServerHttp2Stream): http2.ServerHttp2Session =>
  stream.session as http2.ServerHttp2Session;

const lies: readonly Lie[] = [
  ...statuses,
  {
    name: "a reset",
    tell: (stream) => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR),
    reason: /RST_STREAM|INTERNAL/,
  },
  { name: "a refused stream", tell: (stream) => stream.close(http2.constants.NGHTTP2_REFUSED_STREAM), reason: /./ },
  { name: "GOAWAY with an error", tell: (stream) => session(stream).goaway(11, 1), reason: /./ },
  { name: "the end of the connection", tell: (stream) => session(stream).destroy(), reason: /./ },
  {
    name: "a message of 4 GB, as it says",
    tell: (stream, isAnswered) => write(stream, isAnswered, framed(Buffer.alloc(16), 0xff_ff_ff_ff)),
    reason: /RESOURCE_EXHAUSTED|larger than max/,
  },
  {
    name: "a compressed message of no compression",
    tell: (stream, isAnswered) => write(stream, isAnswered, framed(Buffer.alloc(16), 16, 1)),
    reason: /./,
  },
  {
    name: "a message that is no response",
    tell: (stream, isAnswered) => write(stream, isAnswered, framed(Buffer.from([0xff, 0xff, 0xff, 0xff]))),
    reason: /./,
  },
];

/** Of a stream that was answered grpc-js tells an end without a status only once the client has ended its side too. */
const atOnce: readonly Lie[] = [
  {
    name: "an end without a status",
    tell: (stream) => {
      stream.respond(grpc);
      stream.end();
    },
    reason: /./,
  },
];

const pages: readonly Lie[] = [503, 404, 200, 302].map((status) => ({
  name: `a page of HTML with ${status}`,
  tell: (stream) => {
    stream.respond({ ":status": status, "content-type": "text/html" });
    stream.end("<html>");
  },
  reason: /./,
}));

/** A server whose first connection is told the lie, and whose others are honest. */
async function listen(
  context: TestContext,
  first: (socket: Socket, honest: (socket: Socket) => void) => void,
  onStream: (stream: http2.ServerHttp2Stream, connection: number) => void,
) {
  let connections = 0;
  const server = http2.createServer();
  const sockets = new Set<Socket>();
  server.on("stream", (stream: http2.ServerHttp2Stream) => {
    stream.on("error", () => undefined);
    onStream(stream, connections);
  });
  server.on("sessionError", () => undefined);
  const listener = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("error", () => undefined);
    const honest = (accepted: Socket): void => void server.emit("connection", accepted);
    if (connections === 1) first(socket, honest);
    else honest(socket);
  });
  await new Promise<void>((resolve) => void listener.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    listener.close();
    for (const socket of sockets) socket.destroy();
  });
  return { port: (listener.address() as AddressInfo).port, connections: () => connections };
}

/** Answers each first message of a stream with one cluster. */
function answerHonestly(stream: http2.ServerHttp2Stream, then: () => void = () => undefined): void {
  stream.respond(grpc, { waitForTrailers: true });
  stream.once("data", () => {
    stream.write(framed(response()));
    stream.once("data", then);
  });
}

function startClient(context: TestContext, port: number) {
  const received: string[] = [];
  const removed: string[] = [];
  const reasons: string[] = [];
  const client = connectAds({
    target: `http://127.0.0.1:${port}`,
    node: create(NodeSchema, { id: "sidecar~127.0.0.1~a.b~b.svc.cluster.local" }),
    backOff: { baseMs: 20, maxMs: 40 },
    handlers: {
      onResponse: (answer) => {
        received.push(...answer.resources.keys());
        removed.push(...answer.removed);
        return [];
      },
      onState: (state) => {
        if (state.kind === "waiting") reasons.push(state.reason);
      },
    },
  });
  context.after(() => client.close());
  client.subscribe("CDS", "*");
  return { received, removed, reasons };
}

for (const isAnswered of [false, true]) {
  test(`lies ${isAnswered ? "after an honest answer" : "at once"}`, async (t) => {
    for (const { name, tell, reason } of isAnswered ? lies : [...lies, ...atOnce, ...pages]) {
      await t.test(name, async (context) => {
        const server = await listen(
          context,
          (socket, honest) => honest(socket),
          (stream, connection) => {
            if (connection > 1) answerHonestly(stream);
            else if (isAnswered) answerHonestly(stream, () => tell(stream, true));
            else tell(stream, false);
          },
        );
        const { received, removed, reasons } = startClient(context, server.port);
        const wanted = isAnswered ? 2 : 1;
        await waitFor(() => received.length >= wanted, {
          what: "the honest answer",
          details: () => `${reasons.join("\n")}\n${server.connections()} connections`,
        });
        assert.deepEqual([server.connections(), reasons.length], [2, 1], reasons.join("\n"));
        assert.match(reasons[0]!, reason);
        assert.deepEqual(removed, [], "what was good stays");
      });
    }
  });
}

/** An HTTP/2 frame (RFC 9113 §4.1), without flags, of the connection itself. */
function frame(type: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  return Buffer.concat([head, payload]);
}

const settings = 0x4;
const ping = 0x6;
const floods = [
  { name: "SETTINGS", of: frame(settings, Buffer.alloc(0)) },
  { name: "SETTINGS with values", of: frame(settings, Buffer.from([0, 4, 0, 1, 0, 0])) },
  { name: "PING", of: frame(ping, Buffer.alloc(8)) },
  { name: "frames of an unknown type", of: frame(0xee, Buffer.alloc(8)) },
];

for (const { name, of } of floods) {
  test(`a flood of ${name} ends with its connection, and the next one is served`, async (context) => {
    const flood = Buffer.concat([frame(settings, Buffer.alloc(0)), ...Array.from({ length: 50_000 }, () => of)]);
    const server = await listen(
      context,
      (socket) => void socket.end(flood),
      (stream) => answerHonestly(stream),
    );
    const { received, reasons } = startClient(context, server.port);
    await waitFor(() => received.length > 0, { what: "the honest answer", details: () => reasons.join("\n") });
    assert.deepEqual([server.connections(), reasons.length], [2, 1], reasons.join("\n"));
  });
}

test("a control plane that says GOAWAY in peace goes on with the stream that stands", async (context) => {
  const server = await listen(
    context,
    (socket, honest) => honest(socket),
    (stream) =>
      answerHonestly(stream, () => {
        session(stream).goaway();
        stream.write(framed(response({ versionInfo: "2", nonce: "m", resources: [clusterNamed("later")] })));
      }),
  );
  const { received, reasons } = startClient(context, server.port);
  await waitFor(() => received.includes("later"), { what: "the answer after it", details: () => reasons.join("\n") });
  assert.deepEqual([server.connections(), reasons], [1, []]);
});

const megabyte = 1024 * 1024;
const oddities: readonly (readonly [name: string, changes: Partial<Parameters<typeof encodeResponse>[0]>])[] = [
  ["a type that nobody asked for", { typeUrl: resourceType("LDS").typeUrl, resources: [] }],
  ["a type that does not exist", { typeUrl: "type.googleapis.com/envoy.Nothing", resources: [] }],
  ["no type", { typeUrl: "", resources: [] }],
  [
    "a resource of another type than the response",
    { typeUrl: clusters, resources: [anyPack(NodeSchema, create(NodeSchema))] },
  ],
  ["one name twice", { resources: [clusterNamed("twin"), clusterNamed("twin")] }],
  ["no name", { resources: [clusterNamed("")] }],
  ["a name of 1 MB", { resources: [clusterNamed("x".repeat(megabyte))] }],
  ["a version of 3 MB", { versionInfo: "9".repeat(3 * megabyte) }],
  ["a nonce of 1 MB", { nonce: "9".repeat(megabyte) }],
  ["no nonce", { nonce: "" }],
];

test("odd answers cost neither the stream nor what was good", async (t) => {
  for (const [name, changes] of oddities) {
    await t.test(name, async (context) => {
      const last = response({
        versionInfo: "3",
        nonce: "m",
        resources: [clusterNamed("honest"), clusterNamed("later")],
      });
      const server = await listen(
        context,
        (socket, honest) => honest(socket),
        (stream) =>
          answerHonestly(stream, () => stream.write(Buffer.concat([framed(response(changes)), framed(last)]))),
      );
      const { received, reasons } = startClient(context, server.port);
      await waitFor(() => received.includes("later"), { what: "the last answer", details: () => reasons.join("\n") });
      assert.deepEqual([server.connections(), reasons], [1, []]);
    });
  }
});

test("of 5,000 answers in one breath the last is in effect", async (context) => {
  const count = 5000;
  const server = await listen(
    context,
    (socket, honest) => honest(socket),
    (stream) =>
      answerHonestly(stream, () => {
        const each = Array.from({ length: count }, (_, index) =>
          framed(response({ versionInfo: `${index}`, nonce: `${index}`, resources: [clusterNamed(`c${index}`)] })),
        );
        stream.write(Buffer.concat(each));
      }),
  );
  const { received, reasons } = startClient(context, server.port);
  await waitFor(() => received.includes(`c${count - 1}`), {
    what: "the last answer",
    details: () => reasons.join("\n"),
  });
  assert.deepEqual([server.connections(), reasons], [1, []]);
});
