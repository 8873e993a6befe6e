// What one client can make the ADS server hold, with clients that go beyond each limit: every one of them is told why.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { waitFor } from "../../../tests/tools/processes.ts";
import type { AdsConnection, AdsServerLimits, Refusal } from "./ads-server-api.ts";
import { serveAds } from "./ads-server.ts";
import { maxUnaryCallsPerConnection, maxUnaryRequestBytes } from "./answer-unary.ts";
import { type ByteStream, openByteStream } from "./byte-stream.ts";
import { callUnary } from "./call-unary.ts";
import { encodeResource } from "./encoded-resource.ts";
import { ClusterLoadAssignmentSchema } from "./generated/envoy/config/endpoint/v3/endpoint_pb.ts";
import { type DiscoveryRequest, DiscoveryRequestSchema } from "./generated/envoy/service/discovery/v3/discovery_pb.ts";
import { loadGrpc } from "./load-grpc.ts";
import { type ResourceTypeName, resourceType } from "./resource-types.ts";
import { decodeResponse } from "./sotw/wire.ts";
import { ManualClock } from "@tulle/timing/testing";

const node = { id: "sidecar~127.0.0.1~a.b~b.svc.cluster.local" };
const names = (count: number, prefix = "invented"): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`);

interface Started {
  readonly target: string;
  readonly clock: ManualClock;
  readonly connections: AdsConnection[];
  readonly nacks: string[];
  readonly turnedAway: Refusal[];
}

async function start(context: TestContext, limits: Partial<AdsServerLimits> = {}, existing = 0): Promise<Started> {
  const clock = new ManualClock();
  const connections: AdsConnection[] = [];
  const turnedAway: Refusal[] = [];
  const nacks: string[] = [];
  const server = await serveAds({
    address: { host: "127.0.0.1", port: 0 },
    limits,
    clock,
    onTurnedAway: (_peer, refusal) => void turnedAway.push(refusal),
    unaryHandlers: { "/a.B/C": ({ requestBytes }) => Promise.resolve({ ok: true, bytes: requestBytes }) },
    handlers: {
      onConnect: (connection) => void connections.push(connection),
      onSubscribe: (connection, { type, names: wanted }) => {
        // Whatever is asked for is answered, as EDS is; of them `existing` are there by themselves.
        if (type !== "EDS" || wanted === "*") return;
        const answer = (clusterName: string) =>
          encodeResource(ClusterLoadAssignmentSchema, create(ClusterLoadAssignmentSchema, { clusterName }));
        connection.set("EDS", new Map([...wanted].map((name) => [name, answer(name)])), existing);
      },
      onNack: (_connection, { message }) => void nacks.push(message),
      onDisconnect: () => undefined,
    },
  });
  context.after(() => server.close());
  assert.ok("port" in server.address);
  return { target: `http://127.0.0.1:${server.address.port}`, clock, connections, nacks, turnedAway };
}

interface Opened {
  readonly stream: ByteStream;
  readonly ends: string[];
  readonly responses: number;
  send(request: Partial<Omit<DiscoveryRequest, "node">> & { readonly node?: object }, type?: ResourceTypeName): void;
}

async function open(context: TestContext, target: string): Promise<Opened> {
  const ends: string[] = [];
  const nonces: string[] = [];
  const opened = Promise.withResolvers<void>();
  const stream = openByteStream(target, {
    onOpen: opened.resolve,
    onMessage: (bytes) => void nonces.push(decodeResponse(bytes).nonce),
    onEnd: (reason) => void ends.push(reason),
  });
  context.after(() => stream.close());
  await opened.promise;
  return {
    stream,
    ends,
    get responses() {
      return nonces.length;
    },
    send: (request, type = "EDS") => {
      const { typeUrl } = resourceType(type);
      const nonce = request.errorDetail === undefined ? {} : { responseNonce: nonces.at(-1)! };
      stream.write(
        toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl, ...nonce, ...request } as object)),
      );
    },
  };
}

const ended = ({ ends }: Opened): Promise<string> => waitFor(() => ends[0], { what: "the end of the stream" });

test("a stream that asks for nothing ends, and one that has asked stays", async (context) => {
  const { target, clock, turnedAway, connections } = await start(context, { firstRequestTimeoutMs: 5_000 });
  const [silent, asking] = [await open(context, target), await open(context, target)];
  asking.send({ node });
  await waitFor(() => connections.length === 1, { what: "the first request" });
  clock.pass(4_999);
  assert.deepEqual(silent.ends, []);
  clock.pass(1);
  assert.equal(await ended(silent), "4 DEADLINE_EXCEEDED: no request in 5000 ms");
  asking.send({ resourceNames: ["a"] });
  await waitFor(() => asking.responses > 0, { what: "an answer to the other" });
  assert.deepEqual(turnedAway, [{ status: "DEADLINE_EXCEEDED", details: "no request in 5000 ms" }]);
});

test("names are bounded by what there is, whatever was answered to names that are not there", async (context) => {
  const { target, turnedAway } = await start(context, { maxSpareNames: 100 }, 10);
  const client = await open(context, target);
  client.send({ node, resourceNames: names(100) });
  await waitFor(() => client.responses > 0, { what: "an answer" });
  client.send({ resourceNames: names(120) });
  client.send({ resourceNames: names(121) });
  const details = "a request names 121 resources of EDS, at most 120 are taken";
  assert.equal(await ended(client), `8 RESOURCE_EXHAUSTED: ${details}`);
  assert.deepEqual(turnedAway, [{ status: "RESOURCE_EXHAUSTED", details }]);
});

test("a proxy with many resources may ask for all of them, those that have just gone included", async (context) => {
  const { target, connections } = await start(context, { maxSpareNames: 100 }, 1_000);
  const client = await open(context, target);
  client.send({ node, resourceNames: ["a"] });
  const connection = await waitFor(() => connections[0], { what: "the client" });
  await waitFor(() => client.responses > 0, { what: "an answer" });
  connection.set("EDS", new Map(), 0);
  client.send({ resourceNames: names(2_000) });
  await waitFor(() => client.responses > 1, { what: "answers to them" });
  assert.deepEqual(client.ends, []);
});

const tooMuch: readonly {
  readonly name: string;
  readonly request: Parameters<Opened["send"]>[0];
  readonly type?: ResourceTypeName;
  readonly expected: string;
}[] = [
  {
    name: "a name",
    request: { node, resourceNames: ["x".repeat(1025)] },
    expected: "3 INVALID_ARGUMENT: a name has more than 1024 characters",
  },
  {
    name: "a node",
    request: { node: { ...node, metadata: { LABELS: "x".repeat(512 * 1024) } } },
    expected: "3 INVALID_ARGUMENT: the node has more than 524288 bytes",
  },
  ...(["CDS", "LDS", "RDS", "SDS", "ECDS"] as const).map((type) => ({
    name: `the names of ${type}`,
    request: { node, resourceNames: names(4097) },
    type,
    expected: `8 RESOURCE_EXHAUSTED: a request names 4097 resources of ${type}, at most 4096 are taken`,
  })),
];

for (const { name, request, type, expected } of tooMuch) {
  test(`${name} may have a certain size`, async (context) => {
    const { target } = await start(context);
    const client = await open(context, target);
    client.send(request, type);
    assert.equal(await ended(client), expected);
  });
}

test("of a refusal's reason only the beginning is kept", async (context) => {
  const { target, nacks, connections } = await start(context);
  const client = await open(context, target);
  client.send({ node, resourceNames: ["a"] });
  await waitFor(() => client.responses > 0, { what: "an answer" });
  client.send({ resourceNames: ["a"], errorDetail: { code: 3, message: "x".repeat(1_000_000) } as never });
  const nack = await waitFor(() => nacks[0], { what: "the refusal" });
  assert.deepEqual([nack.length, nack.at(-1)], [4096, "…"]);
  const [rejected] = connections[0]!.status().get("EDS")!.rejected;
  assert.equal(rejected?.message.length, 4096);
});

test("unary calls: their number on a connection, their size, and a stream of them", async (context) => {
  const { target } = await start(context);
  const call = (bytes: Uint8Array) => callUnary({ target, path: "/a.B/C", bytes, metadata: {}, timeoutMs: 10_000 });
  const answered = await call(Uint8Array.of(1, 2));
  assert.deepEqual(answered.ok && [...answered.bytes], [1, 2]);
  const large = await call(new Uint8Array(maxUnaryRequestBytes + 1));
  assert.deepEqual(large, {
    ok: false,
    status: "RESOURCE_EXHAUSTED",
    details: `the request has ${maxUnaryRequestBytes + 1} bytes, the limit is ${maxUnaryRequestBytes}`,
  });
  const grpc = await loadGrpc();
  const client = new grpc.Client(target.slice("http://".length), grpc.credentials.createInsecure());
  context.after(() => client.close());
  const raw = (bytes: Uint8Array): Buffer => Buffer.from(bytes);
  const reasons: string[] = [];
  const calls = Array.from({ length: maxUnaryCallsPerConnection + 1 }, () => {
    const each = client.makeBidiStreamRequest("/a.B/C", raw, raw);
    each.on("error", ({ message }) => void reasons.push(message));
    each.on("data", () => undefined);
    return each;
  });
  await waitFor(() => reasons.length > 0, { what: "the refusal of one too many" });
  assert.deepEqual(reasons, [
    `8 RESOURCE_EXHAUSTED: more than ${maxUnaryCallsPerConnection} calls of one connection at once`,
  ]);
  calls[0]!.write(Uint8Array.of(1));
  calls[0]!.write(Uint8Array.of(2));
  await waitFor(() => reasons.length > 1, { what: "the refusal of a second request" });
  assert.equal(reasons[1], "3 INVALID_ARGUMENT: more than one request");
});
