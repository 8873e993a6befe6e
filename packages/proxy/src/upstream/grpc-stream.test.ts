// Servers that end a stream, or never begin it, in ways that a library would not: each try comes to an end with words,
// and leaves no connection behind. What they send is written frame by frame.
import assert from "node:assert/strict";
import net from "node:net";
import { type TestContext, test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { waitFor } from "../../../../tests/tools/processes.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { compileCluster } from "../compile/compile-cluster.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import { DataPath } from "../worker/data-path.ts";
import { fromConfiguration } from "../testing/from-configuration.ts";
import { Slot } from "../runtime/slot.ts";
import { grpcStreamOpener } from "./grpc-stream.ts";

const dataPath = new DataPath({ logging: new Logging({ sink: () => {} }) });

function frame(type: number, flags: number, stream: number, ...payload: readonly number[]): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, Buffer.from(payload)]);
}

const endStream = 1;
const endHeaders = 4;
const settings = frame(4, 0, 0);
const noStreamAllowed = frame(4, 0, 0, 0, 3, 0, 0, 0, 0);
/** `:status: 200`, indexed. */
const head = frame(1, endHeaders, 1, 0x88);
const message = (...bytes: readonly number[]): Buffer => frame(0, 0, 1, ...bytes);
const goAway = (lastStream: number, code: number): Buffer => frame(7, 0, 0, 0, 0, 0, lastStream, 0, 0, 0, code);

interface HostileServer {
  readonly name: string;
  /** Sent when the connection stands. */
  readonly atOnce?: Buffer;
  /** Sent when the client's preface, and so the call, has come. */
  readonly later?: Buffer;
  readonly closes?: true;
  /** Hears all that comes. */
  readonly onFrames?: (chunk: Buffer, socket: net.Socket) => void;
  /** The others never end their side: as a program that is stopped. */
  readonly endsWithClient?: true;
  readonly reason: RegExp;
}

async function startServer(
  t: TestContext,
  { atOnce, later, closes, onFrames, endsWithClient }: Partial<HostileServer>,
): Promise<number> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer({ allowHalfOpen: endsWithClient !== true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    if (atOnce !== undefined) socket.write(atOnce);
    if (closes) socket.destroy();
    let isCalled = false;
    socket.on("data", (chunk: Buffer) => {
      onFrames?.(chunk, socket);
      // The head of the first call.
      if (isCalled || later === undefined || !chunk.includes(Buffer.from([1, endHeaders, 0, 0, 0, 1]))) return;
      isCalled = true;
      socket.write(later);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as net.AddressInfo).port;
}

const endpointAt = (port: number): object => ({
  endpoint: { address: { socket_address: { address: "127.0.0.1", port_value: port } } },
});

function clusterAt(ports: readonly number[], connectTimeout = "5s", more: object = {}): Slot<Cluster> {
  const compiled = compileCluster(
    fromConfiguration(ClusterSchema, {
      name: "xds",
      connect_timeout: connectTimeout,
      load_assignment: { cluster_name: "xds", endpoints: [{ lb_endpoints: ports.map(endpointAt) }] },
      ...more,
    }),
    detachedScope(),
  );
  assert.ok(compiled.ok);
  const slot = new Slot<Cluster>("xds");
  slot.current = compiled.value.cluster;
  return slot;
}

const target = { clusterName: "xds", authority: "a", metadata: [], maxMessageBytes: 1000 };

interface Tried {
  readonly opened: () => number;
  readonly end: Promise<string>;
  readonly close: () => void;
}

function tryOnce(cluster: Slot<Cluster>): Tried {
  const { promise: end, resolve: onEnd } = Promise.withResolvers<string>();
  let opened = 0;
  const stream = grpcStreamOpener(
    cluster,
    target,
    "/a.B/C",
    dataPath,
  )({
    onOpen: () => (opened += 1),
    onMessage: () => {},
    onEnd,
  });
  return { opened: () => opened, end, close: () => stream.close() };
}

const hasNoConnection = (cluster: Slot<Cluster>): Promise<unknown> =>
  waitFor(() => cluster.current?.load.connections === 0, { what: "the connection's end" });

const servers: readonly HostileServer[] = [
  { name: "closes at once", closes: true, reason: /: the server ended the connection$/ },
  {
    name: "speaks HTTP/1.1",
    atOnce: Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"),
    reason: /: the server breaks the protocol: a frame of more than 16384 bytes$/,
  },
  {
    name: "goes away at once",
    atOnce: Buffer.concat([settings, goAway(0, 0)]),
    endsWithClient: true,
    reason: /remote refused stream reset$/,
  },
  { name: "goes away in anger", atOnce: settings, later: goAway(1, 11), reason: /error code 11$/ },
  { name: "resets the call", atOnce: settings, later: frame(3, 0, 1, 0, 0, 0, 2), reason: /remote reset$/ },
  {
    name: "ends its side without a status",
    atOnce: settings,
    later: Buffer.concat([head, frame(0, endStream, 1)]),
    reason: /the server ended the stream without a status$/,
  },
  {
    name: "answers with a status alone",
    atOnce: settings,
    later: frame(1, endHeaders | endStream, 1, 0x88, 0x40, 11, ...Buffer.from("grpc-status"), 2, ...Buffer.from("14")),
    reason: /the gRPC status 14$/,
  },
  {
    name: "compresses",
    atOnce: settings,
    later: Buffer.concat([head, message(1, 0, 0, 0, 1, 7)]),
    reason: /compressed/,
  },
  {
    name: "announces a message above the limit",
    atOnce: settings,
    later: Buffer.concat([head, message(0, 0, 0, 3, 233)]),
    reason: /a message of 1001 bytes is larger than the limit of 1000$/,
  },
];

for (const { reason, ...server } of servers) {
  test(`a try ends at a server that ${server.name}`, async (t) => {
    const cluster = clusterAt([await startServer(t, server)]);
    assert.match(await tryOnce(cluster).end, reason);
    await hasNoConnection(cluster);
  });
}

for (const [name, server] of [
  ["whose kernel alone answers, because it is stopped", {}],
  ["that lets no call begin", { atOnce: noStreamAllowed }],
] as const) {
  test(`a server ${name}, is given up`, async (t) => {
    const cluster = clusterAt([await startServer(t, server)], "0.05s");
    const tried = tryOnce(cluster);
    assert.match(await tried.end, /: it did not answer in time$/);
    assert.equal(tried.opened(), 0);
    await hasNoConnection(cluster);
  });
}

test("the next host is asked where one takes the connection and says nothing", async (t) => {
  const dumb = await startServer(t, { closes: true });
  const good = await startServer(t, { atOnce: settings });
  // Whoever the balancer begins with, the good one is asked.
  const clusters = [clusterAt([dumb, good]), clusterAt([good, dumb])];
  for (const cluster of clusters) {
    const tried = tryOnce(cluster);
    await waitFor(() => tried.opened() === 1, { what: "the stream" });
    tried.close();
    await hasNoConnection(cluster);
  }
});

test("closing leaves no connection to a server that does not end its side", async (t) => {
  const cluster = clusterAt([await startServer(t, { atOnce: settings })]);
  const tried = tryOnce(cluster);
  await waitFor(() => tried.opened() === 1, { what: "the stream" });
  tried.close();
  await hasNoConnection(cluster);
});

test("messages that came together are handed over one by one, as whoever reads them wants them", async (t) => {
  const together = Buffer.concat([1, 2, 3].map((byte) => Buffer.from([0, 0, 0, 0, 1, byte])));
  const later = Buffer.concat([head, message(...together)]);
  const cluster = clusterAt([await startServer(t, { atOnce: settings, later })]);
  const seen: number[] = [];
  const stream = grpcStreamOpener(
    cluster,
    target,
    "/a.B/C",
    dataPath,
  )({
    onOpen: () => {},
    onMessage: ([byte]) => {
      seen.push(byte!);
      stream.pause();
    },
    onEnd: (reason) => assert.fail(reason),
  });
  for (const expected of [[1], [1, 2], [1, 2, 3]]) {
    await waitFor(() => seen.length >= expected.length, { what: `message ${expected.length}` });
    assert.deepEqual(seen, expected);
    stream.resume();
  }
  stream.close();
  await hasNoConnection(cluster);
});

test("hosts of a lower priority are asked after all of a higher one", async (t) => {
  const dumb = { closes: true } as const;
  const ports = [await startServer(t, { atOnce: settings }), await startServer(t, dumb), await startServer(t, dumb)];
  const [last, ...first] = ports;
  const endpoints = [
    { priority: 1, lb_endpoints: [endpointAt(last!)] },
    { priority: 0, lb_endpoints: first.map(endpointAt) },
  ];
  const cluster = clusterAt([], "5s", { load_assignment: { cluster_name: "xds", endpoints } });
  const tried = tryOnce(cluster);
  await waitFor(() => tried.opened() === 1, { what: "the stream" });
  assert.equal(cluster.current!.stats.upstreamConnectionsTotal.value, 3);
  tried.close();
  await hasNoConnection(cluster);
});

const pings = (interval: string, timeout: string): object => ({
  http2_protocol_options: { connection_keepalive: { interval, timeout, interval_jitter: { value: 0 } } },
});

/** Answers pings, or sends something else that nobody asked for. */
async function startPingedServer(t: TestContext, answer: (ping: Buffer) => Buffer): Promise<PingedServer> {
  const server: PingedServer = { port: 0, pings: 0 };
  server.port = await startServer(t, {
    atOnce: settings,
    onFrames: (chunk, socket) => {
      for (let at = chunk.indexOf(pingHead); at >= 0; at = chunk.indexOf(pingHead, at + 1)) {
        server.pings += 1;
        const bytes = answer(chunk.subarray(at + 9, at + 17));
        if (bytes.length > 0) socket.write(bytes);
      }
    },
  });
  return server;
}

interface PingedServer {
  port: number;
  pings: number;
}

const pingHead = frame(6, 0, 0, ...Buffer.alloc(8)).subarray(0, 9);

test("connection_keepalive: a server that answers no pings is left", async (t) => {
  const server = await startPingedServer(t, () => Buffer.alloc(0));
  const cluster = clusterAt([server.port], "5s", pings("0.01s", "0.02s"));
  const tried = tryOnce(cluster);
  assert.match(await tried.end, /answers no pings/);
  assert.equal(tried.opened(), 1);
  await hasNoConnection(cluster);
});

test("connection_keepalive: one that answers is pinged again and again", async (t) => {
  const server = await startPingedServer(t, (ping) => frame(6, 1, 0, ...ping));
  const cluster = clusterAt([server.port], "5s", pings("0.01s", "60s"));
  const tried = tryOnce(cluster);
  await waitFor(() => server.pings >= 5, { what: "five pings" });
  tried.close();
  await hasNoConnection(cluster);
  assert.equal(tried.opened(), 1);
});
