// A control plane that lies, in front of both who listen to one: Tulle's proxy by itself, and the agent's relay with a
// proxy behind it. Whatever it says, the last good configuration stays, the next try comes after a pause, and an honest
// control plane is heard again.
import assert from "node:assert/strict";
import path from "node:path";
import { type TestContext, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { parseBootstrap, runProxy } from "@tulle/proxy";
import { type LogEntry, Logging } from "@tulle/telemetry";
import { connectAds } from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import {
  type Answer,
  type LyingControlPlane,
  type LyingResponse,
  type LyingStream,
  cluster,
  framed,
  grpcHead,
  response,
  startLyingControlPlane,
} from "../testing/lying-control-plane.ts";
import { tries } from "../../../../tests/tools/tries.ts";
import { startRelay } from "./relay.ts";

const nodeId = "sidecar~127.0.0.1~a.b~b.svc.cluster.local";

/** The result tells how many clusters of the control plane are in effect. */
type Listens = (context: TestContext, port: number, log: LogEntry[]) => Promise<() => number>;

const proxyListens: Listens = async (context, port, log) => {
  const bootstrap = {
    node: { id: nodeId, cluster: "b" },
    dynamic_resources: {
      ads_config: { api_type: "GRPC", grpc_services: [{ envoy_grpc: { cluster_name: "xds" } }] },
      cds_config: { ads: {} },
    },
    static_resources: {
      clusters: [
        {
          name: "xds",
          type: "STATIC",
          connect_timeout: "5s",
          typed_extension_protocol_options: {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
              "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
          load_assignment: {
            cluster_name: "xds",
            endpoints: [
              {
                lb_endpoints: [
                  { endpoint: { address: { socket_address: { address: "127.0.0.1", port_value: port } } } },
                ],
              },
            ],
          },
        },
      ],
    },
  };
  const proxy = await runProxy({
    bootstrap: parseBootstrap(JSON.stringify(bootstrap), "b.json"),
    logging: new Logging({ sink: (entry) => void log.push(entry) }),
  });
  context.after(() => proxy.close());
  return () => {
    const names = [...proxy.metrics.allSeries()].map(
      ({ statName }) => /^cluster\.(kept|more)\./.exec(statName ?? "")?.[1],
    );
    return new Set(names.filter((name) => name !== undefined)).size;
  };
};

const relayListens: Listens = async (context, port, log) => {
  const folder = temporaryFolder("tulle-liar-");
  const socketPath = path.join(folder, "xds.sock");
  const relay = await startRelay({
    socketPath,
    statePath: path.join(folder, "xds-state"),
    controlPlane: `http://127.0.0.1:${port}`,
    nodeId,
    log: new Logging({ sink: (entry) => void log.push(entry) }).logger("relay"),
  });
  const held = new Set<string>();
  const client = connectAds({
    target: `unix:${socketPath}`,
    node: create(NodeSchema, { id: nodeId }),
    handlers: {
      onResponse: (answer) => {
        for (const name of answer.removed) held.delete(name);
        for (const name of answer.resources.keys()) held.add(name);
        return [];
      },
    },
  });
  client.subscribe("CDS", "*");
  context.after(() => {
    client.close();
    return relay.close();
  });
  return () => held.size;
};

const good: Answer = ({ call }) => {
  call.respond(grpcHead, { waitForTrailers: true });
  call.write(response([cluster("kept")], { nonce: "good" }));
};
const better: Answer = ({ call }) => {
  call.respond(grpcHead);
  call.write(response([cluster("kept"), cluster("more")], { versionInfo: "2", nonce: "better" }));
};

function responded({ call }: LyingStream): void {
  if (!call.headersSent && !call.destroyed) call.respond(grpcHead, { waitForTrailers: true });
}

interface Lie {
  readonly name: string;
  readonly lie: Answer;
}

const status =
  (code: number | undefined, message = "a lie"): Answer =>
  ({ call, socket }) => {
    const trailers = code === undefined ? {} : { "grpc-status": String(code), "grpc-message": message };
    if (call.headersSent && code === undefined) {
      socket.write(frame(0, 1, call.id!, Buffer.alloc(0)));
      // As servers do that have not read the request to its end (RFC 9113 §8.1).
      setImmediate(() => call.close(0));
    } else if (call.headersSent) {
      call.on("wantTrailers", () => void (call.destroyed || call.sendTrailers(trailers)));
      call.end();
    } else if (code === undefined) call.respond(grpcHead, { endStream: true });
    else call.respond({ ...grpcHead, ...trailers }, { endStream: true });
  };

/** Neither trailers nor a reset follow: our side stays open, and with it the stream. */
const halfClosed: Answer = (stream) => {
  responded(stream);
  setImmediate(() => stream.socket.write(frame(0, 1, stream.call.id!, Buffer.alloc(0))));
};

const head =
  (headers: object): Answer =>
  (stream) => {
    if (stream.call.headersSent) stream.call.close(2);
    else {
      stream.call.respond(headers as never);
      stream.call.end("no gRPC");
    }
  };

const message =
  (bytes: () => Buffer): Answer =>
  (stream) => {
    responded(stream);
    stream.call.write(bytes());
  };

const frame = (type: number, flags: number, streamId: number, payload: Buffer): Buffer => {
  const bytes = Buffer.alloc(9);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(streamId, 5);
  return Buffer.concat([bytes, payload]);
};

const flood =
  (bytes: Buffer, times: number): Answer =>
  (stream) => {
    responded(stream);
    setImmediate(() => stream.socket.write(Buffer.concat(Array.from({ length: times }, () => bytes))));
  };

/** After each the stream has to end, and to be opened again. */
const endings: readonly Lie[] = [
  ...Array.from({ length: 17 }, (_, code) => ({ name: `gRPC status ${code}`, lie: status(code) })),
  { name: "a status with 10,000 letters", lie: status(14, "x".repeat(10_000)) },
  { name: "no gRPC status", lie: status(undefined) },
  { name: "the end of its side alone", lie: halfClosed },
  { name: "503", lie: head({ ":status": 503 }) },
  { name: "text/html", lie: head({ ":status": 200, "content-type": "text/html" }) },
  {
    name: "GOAWAY, and then the end",
    lie: ({ session, socket }) => {
      session.goaway(0);
      setImmediate(() => socket.destroySoon());
    },
  },
  { name: "GOAWAY with an error", lie: ({ session }) => session.goaway(11) },
  { name: "GOAWAY before the stream", lie: flood(frame(7, 0, 0, Buffer.alloc(8)), 1) },
  { name: "a message of 4 GB", lie: message(() => framed(Buffer.alloc(10), 0xffff_ffff)) },
  { name: "a compressed message", lie: message(() => framed(Buffer.alloc(10), 10, 1)) },
  { name: "no message of xDS", lie: message(() => framed(Buffer.alloc(10, 0xff))) },
  { name: "RST_STREAM", lie: ({ call }) => call.close(8) },
  { name: "RST_STREAM of 10,000 other streams", lie: flood(frame(3, 0, 1001, Buffer.from([0, 0, 0, 8])), 10_000) },
  { name: "10,000 pings", lie: flood(frame(6, 0, 0, Buffer.alloc(8)), 10_000) },
  { name: "10,000 SETTINGS", lie: flood(frame(4, 0, 0, Buffer.alloc(0)), 10_000) },
  { name: "the end of the connection", lie: ({ socket }) => void socket.destroy() },
];

const changes = tries({ short: 400, long: 2000 });
const many = (count: number, more: (index: number) => LyingResponse): Answer =>
  message(() => Buffer.concat(Array.from({ length: count }, (_, index) => response([cluster("kept")], more(index)))));

const times =
  (count: number, what: Answer): Answer =>
  (stream) => {
    for (let index = 0; index < count; index += 1) what(stream);
  };

/** The stream stands, and goes on with what is said next. */
const standing: readonly Lie[] = [
  { name: "500 SETTINGS", lie: times(500, ({ session }) => session.settings({})) },
  { name: "500 pings", lie: times(500, ({ session }) => session.ping(() => undefined)) },
  { name: "an unknown type", lie: many(1, () => ({ typeUrl: "type.googleapis.com/a.B", nonce: "n" })) },
  { name: "a type that nobody asked for", lie: many(1, () => ({ type: "ECDS", nonce: "n" })) },
  { name: "empty nonces", lie: many(100, () => ({ nonce: "" })) },
  { name: "one nonce for all", lie: many(100, () => ({ nonce: "same" })) },
  { name: "a version of 3 MB", lie: many(1, () => ({ versionInfo: "v".repeat(3_000_000), nonce: "n" })) },
  { name: "a nonce of 3 MB", lie: many(1, () => ({ nonce: "n".repeat(3_000_000) })) },
  { name: "a name twice", lie: message(() => response([cluster("kept"), cluster("kept")], { nonce: "n" })) },
  { name: `${changes} changes`, lie: many(changes, (index) => ({ versionInfo: `v${index}`, nonce: `n${index}` })) },
];

interface Scene {
  readonly server: LyingControlPlane;
  /** How many clusters are in effect. */
  readonly held: () => number;
  readonly log: readonly LogEntry[];
}

/** One who listens, and has its first configuration. */
async function start(context: TestContext, listens: Listens): Promise<Scene> {
  const log: LogEntry[] = [];
  const server = await startLyingControlPlane(context, good);
  const held = await listens(context, server.port, log);
  await waitFor(() => held() === 1 && server.streams[0]!.requests[0]!.responseNonce === "good", {
    what: "the first configuration",
  });
  return { server, held, log };
}

const isLoss = ({ message: words }: LogEntry): boolean => /^(the xDS stream ended|no control plane)/.test(words);

for (const [who, listens] of [
  ["the proxy", proxyListens],
  ["the relay", relayListens],
] as const) {
  describe(`${who}, and a control plane that ends each stream by`, { concurrency: true }, () => {
    for (const { name, lie } of endings) {
      test(name, async (context) => {
        const { server, held, log } = await start(context, listens);
        server.answer = lie;
        lie(server.streams[0]!);
        const details = (): string => `${server.streams.length} streams, ${JSON.stringify(log)}`;
        await waitFor(() => server.streams.length === 4, { what: "three tries", details });
        assert.equal(held(), 1);
        // Each pause is at least half of 200 ms, doubled for each try. Timers are never early, but count whole
        // milliseconds.
        const pauses = server.openedAtMs.map((atMs, index) => atMs - server.openedAtMs[index - 1]!);
        assert.ok(pauses[1]! > 98 && pauses[2]! > 98, pauses.join());
        server.answer = better;
        await waitFor(() => held() === 2, { what: "an honest answer", details });
        const losses = log.filter(isLoss).map(({ message: words, fields }) => `${words} ${JSON.stringify(fields)}`);
        assert.equal(losses.length, new Set(losses).size, "each kind of trouble is told once");
        assert.ok(
          losses.length >= 1 && losses.every((line) => line.length < 700 && !line.includes("undefined")),
          details(),
        );
      });
    }
  });

  describe(`${who}, and a control plane that says in a stream`, { concurrency: true }, () => {
    for (const { name, lie } of standing) {
      test(name, async (context) => {
        const { server, held, log } = await start(context, listens);
        const [stream] = server.streams;
        lie(stream!);
        stream!.call.write(response([cluster("kept"), cluster("more")], { versionInfo: "2", nonce: "better" }));
        const details = (): string => `${server.streams.length} streams, ${JSON.stringify(log)}`;
        await waitFor(() => held() === 2 && stream!.requests[0]!.responseNonce === "better", {
          what: "an honest answer",
          details,
        });
        assert.equal(server.streams.length, 1);
        assert.ok(log.filter(({ level }) => level === "warning" || level === "error").length <= 1, details());
      });
    }
  });
}
