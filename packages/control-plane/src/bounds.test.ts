// What the control plane bounds, with a client that goes beyond each: it is refused with words, and others are served
// on. docs/control-plane.md lists the limits.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import http, { type OutgoingHttpHeaders } from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { type TestContext, test } from "node:test";
import { ApiClient } from "@tulle/config";
import { type LogEntry, Logging } from "@tulle/telemetry";
import { connectAds, resourceType } from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { create } from "@bufbuild/protobuf";
import { waitFor } from "../../../tests/tools/processes.ts";
import { socketRequest } from "../../../tests/tools/socket-request.ts";
import {
  type ManifestControlPlaneOptions,
  type RunningManifestControlPlane,
  runManifestControlPlane,
} from "./run-manifest-control-plane.ts";
import { EmptyEndpoints, maxSharedNames } from "./serve/empty-endpoints.ts";
import { adsPath, connectRaw, framed, openStream, prefixed } from "./testing/raw-stream.ts";
import { tries } from "../../../tests/tools/tries.ts";

const nodeId = "sidecar~127.0.0.1~a.b~b.svc.cluster.local";
const patienceMs = 60_000;

/** Of what a client sends without end. */
const crowd = tries({ short: 2000, long: 10_000 });

async function start(
  context: TestContext,
  options: Partial<ManifestControlPlaneOptions> = {},
): Promise<{ readonly running: RunningManifestControlPlane; readonly socketPath: string }> {
  const stateDirectory = await mkdtemp(path.join(tmpdir(), "control-plane-bounds-"));
  const running = await runManifestControlPlane({
    stateDirectory,
    xdsAddress: { host: "127.0.0.1", port: 0 },
    httpAddress: { host: "127.0.0.1", port: 0 },
    logging: new Logging({ level: "off" }),
    ...options,
  });
  context.after(async () => {
    await running.close();
    await rm(stateDirectory, { recursive: true });
  });
  return { running, socketPath: running.socketPath };
}

/** Another client connects and subscribes. */
async function assertServed(context: TestContext, { xdsAddress }: RunningManifestControlPlane): Promise<void> {
  let answered = false;
  const client = connectAds({
    target: `http://127.0.0.1:${xdsAddress!.port}`,
    node: create(NodeSchema, { id: "sidecar~127.0.0.1~a.b~b.svc.cluster.local" }),
    handlers: {
      onResponse: () => {
        answered = true;
        return [];
      },
      onState: () => undefined,
    },
  });
  context.after(() => client.close());
  client.subscribe("CDS", "*");
  await waitFor(() => answered, { timeoutMs: patienceMs, what: "an answer to another client" });
}

test("thousands of streams of one connection: all but a hundred are refused, and others are served", async (context) => {
  // On a busy machine the last streams come when the first ones would have had to ask for something.
  const { running } = await start(context, { xdsLimits: { firstRequestTimeoutMs: 3_600_000 } });
  const session = connectRaw(context, running);
  const refused = "8 more than 100 streams of one connection";
  let refusals = 0;
  let standing = 0;
  for (let opened = 0; opened < crowd; opened += 100) {
    const batch = Array.from({ length: 100 }, () => openStream(session));
    await waitFor(() => batch.every(({ stands, outcome }) => stands() || outcome() !== undefined), {
      timeoutMs: patienceMs,
      what: "an answer to each stream",
    });
    refusals += batch.filter(({ outcome }) => outcome() === refused).length;
    standing += batch.filter(({ outcome }) => outcome() === undefined).length;
  }
  assert.deepEqual([refusals, standing], [crowd - 100, 100]);
  await assertServed(context, running);
});

test("thousands of streams in one breath end their connection, and others are served", async (context) => {
  const { running } = await start(context);
  const session = connectRaw(context, running);
  for (let index = 0; index < 10_000; index += 1) openStream(session);
  await waitFor(() => session.destroyed, { timeoutMs: patienceMs, what: "the end of the connection" });
  await assertServed(context, running);
});

test("as many streams as are allowed in all, and one more", async (context) => {
  const { running } = await start(context, { xdsLimits: { maxStreams: 3 } });
  const sessions = [connectRaw(context, running), connectRaw(context, running)];
  const streams = [0, 1, 0, 1].map((index) => openStream(sessions[index]!));
  await waitFor(() => streams.filter(({ outcome }) => outcome() === "8 more than 3 streams").length === 1, {
    timeoutMs: patienceMs,
    what: "one refusal",
  });
});

const manyNames = tries({ short: 3, long: 10 });

test(`${manyNames} streams with 150,000 invented clusters each: all are refused with words, and others are served`, async (context) => {
  const { running } = await start(context);
  const request = (index: number): Buffer =>
    framed({
      node: { id: nodeId },
      typeUrl: resourceType("EDS").typeUrl,
      resourceNames: Array.from({ length: 150_000 }, (_, number) => `invented-${index}-${number}`),
    });
  const streams = Array.from({ length: manyNames }, (_, index) => {
    // Connections of their own: Node's client keeps no more than 10 MB for one.
    const opened = openStream(connectRaw(context, running));
    opened.stream.write(request(index));
    return opened;
  });
  await assertServed(context, running);
  await waitFor(() => streams.every(({ outcome }) => outcome() !== undefined), {
    timeoutMs: patienceMs,
    what: "the end of them all",
  });
  const refusal = "8 a request names 150000 resources of EDS, at most 4096 are taken";
  assert.deepEqual(new Set(streams.map(({ outcome }) => outcome())), new Set([refusal]));
  const metrics = await (await fetch(`http://127.0.0.1:${running.httpAddress.port}/metrics`)).text();
  const turnedAway = /^tulle_xds_turned_away_total\{status="RESOURCE_EXHAUSTED"\} (\d+)$/m.exec(metrics)?.[1];
  assert.equal(turnedAway, String(manyNames));
});

test("answers to invented names are shared, and there are only so many of them", () => {
  const empty = new EmptyEndpoints();
  assert.equal(empty.of("a"), empty.of("a"));
  for (let index = 0; index < 3 * maxSharedNames; index += 1) empty.of(`invented-${index}`);
  assert.ok(empty.size <= maxSharedNames);
});

test("a node that is turned away is told so by a status, and a long id is not repeated", async (context) => {
  const lines: LogEntry[] = [];
  const { running } = await start(context, {
    logging: new Logging({ level: "info", sink: (entry) => void lines.push(entry) }),
  });
  const reasonFor = async (id: string): Promise<string> => {
    const reasons: string[] = [];
    const client = connectAds({
      target: `http://127.0.0.1:${running.xdsAddress!.port}`,
      node: create(NodeSchema, { id }),
      handlers: {
        onResponse: () => [],
        onState: (state) => {
          if (state.kind === "waiting") reasons.push(state.reason);
        },
      },
    });
    client.subscribe("CDS", "*");
    const reason = await waitFor(() => reasons[0], { timeoutMs: patienceMs, what: "the end of the stream" });
    client.close();
    return reason;
  };
  assert.equal(
    await reasonFor("me"),
    '3 INVALID_ARGUMENT: node id "me" is not <type>~<address>~<pod>.<namespace>~<domain>',
  );
  assert.equal(
    await reasonFor("x".repeat(100_000)),
    "3 INVALID_ARGUMENT: the node id has 100000 characters, the limit is 1024",
  );
  assert.ok(lines.some(({ message, fields }) => message === "a client was turned away" && fields?.["reason"]));
  assert.ok(lines.every((line) => JSON.stringify(line).length < 2_000));
});

test("a message of 1 GB is refused by its announced length", async (context) => {
  const { running } = await start(context);
  const { stream, outcome } = openStream(connectRaw(context, running));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(1024 * 1024 * 1024, 1);
  stream.write(prefix);
  await waitFor(() => outcome() !== undefined, { timeoutMs: patienceMs, what: "the end of the stream" });
  assert.equal(outcome(), "8 Received message larger than max (1073741824 vs 4194304)");
  await assertServed(context, running);
});

const lies: readonly {
  readonly name: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly bytes: Buffer;
  readonly expected: RegExp;
}[] = [
  {
    name: "asks for the incremental protocol",
    headers: { ":path": adsPath.replace("Stream", "Delta") },
    bytes: framed({}),
    expected: /^12 the incremental protocol \(DELTA_GRPC\) is not spoken here: set api_type: GRPC where/,
  },
  { name: "asks for a method that is not there", headers: { ":path": "/a.B/C" }, bytes: framed({}), expected: /^12 / },
  { name: "sends half a message and ends", bytes: framed({ node: { id: nodeId } }).subarray(0, 9), expected: /^0 / },
  { name: "lies about compression", bytes: Buffer.from([1, 0, 0, 0, 2, 1, 2]), expected: /^3 not a DiscoveryRequest/ },
  {
    name: "compresses 64 MB into a few KB",
    headers: { "grpc-encoding": "gzip" },
    bytes: prefixed(gzipSync(Buffer.alloc(64 * 1024 * 1024)), 1),
    expected: /^8 .*larger than 4194304/,
  },
  { name: "sends no request", bytes: Buffer.from([0, 0, 0, 0, 2, 255, 255]), expected: /^3 not a DiscoveryRequest/ },
  { name: "begins without a node", bytes: framed({}), expected: /^3 the first request carries no node id/ },
];

for (const { name, headers, bytes, expected } of lies) {
  test(`a client that ${name} is told so by a status, and others are served`, async (context) => {
    const { running } = await start(context);
    const { stream, outcome } = openStream(connectRaw(context, running), headers);
    stream.end(bytes);
    await waitFor(() => outcome() !== undefined, { what: "the end of the stream" });
    assert.match(outcome()!, expected);
    await assertServed(context, running);
  });
}

const floods: readonly { readonly name: string; readonly request: Parameters<typeof framed>[0] }[] = [
  { name: "acknowledgements of what was never sent", request: { responseNonce: "invented", versionInfo: "1" } },
  {
    name: "refusals of what was never sent",
    request: { responseNonce: "invented", errorDetail: { code: 3, message: "bad".repeat(100) } },
  },
  { name: "first requests, again and again", request: {} },
  { name: "other nodes", request: { node: { id: "sidecar~127.0.0.1~other.b~b.svc.cluster.local" } } },
  { name: "old versions", request: { versionInfo: "a version of another age" } },
  { name: "requests of a type that is unknown", request: { typeUrl: "type.googleapis.com/a.B" } },
];

for (const { name, request } of floods) {
  test(`thousands of ${name}: others are served, and the log stays short`, async (context) => {
    const lines: LogEntry[] = [];
    const { running } = await start(context, {
      logging: new Logging({ level: "info", sink: (entry) => void lines.push(entry) }),
    });
    const { stream, outcome } = openStream(connectRaw(context, running));
    const { typeUrl } = resourceType("CDS");
    stream.write(framed({ node: { id: nodeId }, typeUrl }));
    const before = lines.length;
    let answeredBytes = 0;
    stream.on("data", (chunk: Buffer) => (answeredBytes += chunk.byteLength));
    const one = framed({ typeUrl, ...request });
    stream.write(Buffer.concat(Array.from({ length: crowd }, () => one)));
    await assertServed(context, running);
    // What comes last is read last.
    stream.write(framed({ typeUrl, resourceNames: ["x".repeat(2000)] }));
    await waitFor(() => outcome() !== undefined, { timeoutMs: patienceMs, what: "the end of the stream" });
    assert.equal(outcome(), "3 a name has more than 1024 characters");
    assert.ok(answeredBytes < 10_000, String(answeredBytes));
    assert.ok(lines.length - before < 10, String(lines.length - before));
  });
}

test("HTTP/1.1 to the port of xDS ends the connection, and others are served", async (context) => {
  const { running } = await start(context);
  const socket = net.connect(running.xdsAddress!.port, "127.0.0.1");
  let ended = false;
  socket.on("error", () => undefined).on("close", () => (ended = true));
  socket.resume().write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await waitFor(() => ended, { timeoutMs: patienceMs, what: "the end of the connection" });
  await assertServed(context, running);
});

const service = (name: string): object => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, namespace: "shop" },
  spec: { ports: [{ name: "http", port: 80 }] },
});

test("one resource more than there may be; those that are there can be changed and deleted", async (context) => {
  const { socketPath } = await start(context, { maxResources: 2 });
  const ask = async (method: string, name: string): Promise<string> => {
    const answer = await socketRequest(socketPath, `/api/v1/resources/Service/shop/${name}`, {
      method,
      ...(method === "PUT" && { body: JSON.stringify(service(name)) }),
    });
    const { error } = JSON.parse(answer.body) as { readonly error?: { readonly message: string } };
    return `${answer.status}${error === undefined ? "" : ` ${error.message}`}`;
  };
  const full = "507 the mesh has 2 resources, which is the limit: delete some first";
  const seen = [];
  for (const [method, name] of [
    ["PUT", "a"],
    ["PUT", "b"],
    ["PUT", "c"],
    ["PUT", "a"],
    ["DELETE", "a"],
    ["PUT", "c"],
  ] as const)
    seen.push(await ask(method, name));
  assert.deepEqual(seen, ["201", "201", full, "200", "200", "201"]);
});

test("a body of 1 GB is refused as soon as it is too long", async (context) => {
  const { socketPath } = await start(context);
  const answer = await new Promise<{ readonly status: number; readonly body: string }>((resolve, reject) => {
    const request = http.request({
      socketPath,
      path: "/api/v1/resources/Service/shop/a",
      method: "PUT",
      headers: { "content-length": 1024 * 1024 * 1024 },
    });
    request.on("error", reject).on("response", (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => (body += text));
      response.on("end", () => resolve({ status: response.statusCode!, body }));
    });
    request.write(Buffer.alloc(4 * 1024 * 1024, " "));
  });
  assert.equal(answer.status, 413);
  assert.match(answer.body, /larger than 3145728 bytes/);
});

test("one watch more than there may be", async (context) => {
  const { socketPath } = await start(context);
  const agent = new http.Agent({ keepAlive: false, maxSockets: Infinity });
  context.after(() => agent.destroy());
  const watch = (): Promise<http.IncomingMessage> =>
    new Promise((resolve, reject) => {
      http.get({ socketPath, path: "/api/v1/watch", agent }, resolve).on("error", reject);
    });
  const open = await Promise.all(Array.from({ length: 256 }, watch));
  assert.ok(open.every(({ statusCode }) => statusCode === 200));
  const refused = await watch();
  let body = "";
  for await (const text of refused.setEncoding("utf8")) body += text as string;
  assert.equal(refused.statusCode, 503);
  assert.match(body, /more than 256 watchers/);
  // One that goes makes room.
  open[0]!.destroy();
  await waitFor(
    async () => {
      const again = await watch();
      again.destroy();
      return again.statusCode === 200;
    },
    { timeoutMs: patienceMs, what: "room for another" },
  );
  const api = new ApiClient({ endpoint: { socketPath } });
  assert.deepEqual(await api.findings(), []);
});
