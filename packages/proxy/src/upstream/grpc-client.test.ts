// Sessions of gRPC calls: one for each host, closed with it, and what a call says that comes to nothing.
import assert from "node:assert/strict";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { compileCluster } from "../compile/compile-cluster.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { DataPath } from "../worker/data-path.ts";
import { fromConfiguration } from "../testing/from-configuration.ts";
import { testAuthority } from "../testing/test-authority.ts";
import { Slot } from "../runtime/slot.ts";
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { callGrpc, type GrpcResult } from "./grpc-client.ts";
import { drainHostPool } from "./host-pool.ts";

const ours = await testAuthority();
const theirs = await (await testAuthority()).issue();
const sessions = new Set<http2.ServerHttp2Session>();
const server = http2.createServer();
let opened = 0;
const dataPath = new DataPath({ logging: new Logging({ sink: () => {} }) });

before(async () => {
  server.on("session", (session) => {
    opened += 1;
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
  });
  server.on("stream", (stream: http2.ServerHttp2Stream, headers) => {
    stream.on("error", () => undefined);
    stream.resume();
    if (headers[":path"] === "/late") return;
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    // An empty message, or many bytes.
    stream.end(headers[":path"] === "/long" ? Buffer.alloc(4096) : Buffer.alloc(5));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
});

after(() => {
  for (const session of sessions) session.destroy();
  server.close();
});

function clusterAt(port: number, extra: object = {}): Cluster {
  const compiled = compileCluster(
    fromConfiguration(ClusterSchema, {
      name: "authorizer",
      load_assignment: {
        cluster_name: "authorizer",
        endpoints: [
          { lb_endpoints: [{ endpoint: { address: { socket_address: { address: "127.0.0.1", port_value: port } } } }] },
        ],
      },
      ...extra,
    }),
    detachedScope(),
  );
  assert.ok(compiled.ok);
  return compiled.value.cluster;
}

const target = { clusterName: "authorizer", authority: "a", metadata: [], maxMessageBytes: undefined };

function call(cluster: Cluster | undefined, path = "/call"): Promise<GrpcResult> {
  const slot = new Slot<Cluster>("authorizer");
  if (cluster !== undefined) slot.current = cluster;
  const request = { path, message: Buffer.from("m") };
  return new Promise((resolve) => {
    const timeoutMs = path === "/late" ? 100 : 30_000;
    callGrpc(slot, target, request, { timeoutMs, maxResponseBytes: 1024 }, dataPath, resolve);
  });
}

const portOf = (): number => (server.address() as AddressInfo).port;

test("calls of a host share a session, which ends when the host leaves", async () => {
  const cluster = clusterAt(portOf());
  const results = await Promise.all([call(cluster), call(cluster)]);
  assert.deepEqual(
    [...results, await call(cluster)].map(({ ok }) => ok),
    [true, true, true],
  );
  assert.equal(opened, 1);
  drainHostPool(cluster.loadBalancer.chooseHost(undefined)!);
  await waitFor(() => sessions.size === 0, { what: "the session's end" });
  assert.equal((await call(cluster)).ok, true);
  assert.equal(opened, 2);
  assert.equal(cluster.stats.upstreamRequestsTotal.value, 4);
  assert.equal(cluster.stats.upstreamRequestsActive.value, 0);
});

for (const { name, path, expected } of [
  { name: "no answer in time", path: "/late", expected: "timeout" },
  { name: "an answer that is too long", path: "/long", expected: "the answer is too large" },
]) {
  test(name, async () => {
    const result = await call(clusterAt(portOf()), path);
    assert.deepEqual(result, { ok: false, reason: expected });
  });
}

test("no cluster, and nobody there", async () => {
  assert.deepEqual(await call(undefined), { ok: false, reason: "cluster_not_found" });
  assert.equal((await call(clusterAt(1))).ok, false);
});

test("a call that is given up says nothing, and counts as over", async () => {
  const cluster = clusterAt(portOf());
  const slot = new Slot<Cluster>("authorizer");
  slot.current = cluster;
  let said = 0;
  const request = { path: "/late", message: Buffer.alloc(0) };
  const options = { timeoutMs: 0, maxResponseBytes: 1 };
  const given = callGrpc(slot, target, request, options, dataPath, () => (said += 1));
  await waitFor(() => cluster.stats.upstreamRequestsActive.value === 1, { what: "the call" });
  given.cancel();
  assert.equal(cluster.stats.upstreamRequestsActive.value, 0);
  assert.equal((await call(cluster)).ok, true);
  assert.equal(said, 0);
});

for (const { name, validation, expected } of [
  {
    name: "a host that shows nobody's certificate hears nothing",
    validation: { validation_context: { trusted_ca: { inline_string: ours.rootPem } } },
    expected: /CERTIFICATE_VERIFY_FAILED/,
  },
  {
    name: "nothing to verify a host with",
    validation: { validation_context_sds_secret_config: { name: "ROOTCA", sds_config: { ads: {} } } },
    expected: /Secret is not supplied by SDS/,
  },
]) {
  test(name, async (t) => {
    const heard: string[] = [];
    const secure = http2.createSecureServer({ cert: theirs.chainPem, key: theirs.keyPem });
    secure.on("stream", (_stream, headers) => heard.push(String(headers[":path"])));
    secure.on("sessionError", () => undefined);
    await new Promise<void>((resolve) => {
      secure.listen(0, "127.0.0.1", resolve);
    });
    t.after(() => secure.close());
    const cluster = clusterAt((secure.address() as AddressInfo).port, {
      transport_socket: {
        name: "tls",
        typed_config: {
          "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
          common_tls_context: validation,
        },
      },
    });
    const result = await call(cluster);
    assert.match(result.ok ? "ok" : result.reason, expected);
    assert.deepEqual(heard, []);
    assert.equal(cluster.stats.upstreamRequestsActive.value, 0);
    await waitFor(() => cluster.stats.upstreamConnectionsActive.value === 0, { what: "the end of the connection" });
  });
}
