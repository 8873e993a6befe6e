// Checks on real connections: with mutual TLS, of a server that grpc-js made, and what becomes of the connection.
import assert from "node:assert/strict";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import type net from "node:net";
import { createServer } from "node:net";
import type { Writable } from "node:stream";
import { type TestContext, test } from "node:test";
import grpc from "@grpc/grpc-js";
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { waitFor } from "../../../../../tests/tools/processes.ts";
import { compileCluster } from "../../compile/compile-cluster.ts";
import { detachedScope } from "../../fields/compile-scope.ts";
import { extension, http2Options, inline, staticCluster } from "../../testing/envoy-json.ts";
import { fromConfiguration } from "../../testing/from-configuration.ts";
import { testAuthority } from "../../testing/test-authority.ts";
import { DataPath } from "../../worker/data-path.ts";
import { healthFlags } from "../host-health.ts";
import { CheckQueue } from "./check-queue.ts";

/** A cluster of those ports whose checks have begun. */
function checkedCluster(t: TestContext, ports: readonly number[], check: object, more: object = {}) {
  const json = {
    ...staticCluster("c", ports, more),
    health_checks: [
      {
        timeout: "60s",
        interval: "0.05s",
        no_traffic_interval: "0.05s",
        unhealthy_threshold: 1,
        healthy_threshold: 1,
        ...check,
      },
    ],
  };
  const scope = detachedScope();
  const result = compileCluster(fromConfiguration(ClusterSchema, json), scope);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  const { cluster } = result.value;
  t.after(() => cluster.stop());
  cluster.healthChecker!.start(new CheckQueue(new DataPath({ logging: scope.logging })), () => undefined);
  const flags = (): string[] => cluster.hosts.map((host) => healthFlags(host).join(" "));
  const count = (name: string): number =>
    Number(new RegExp(`health_check_${name}\\{.*\\} (\\d+)`).exec(scope.metrics.page(undefined).text)?.[1] ?? 0);
  return { cluster, flags, count };
}

async function listening(t: TestContext, server: net.Server): Promise<number> {
  const sockets = new Set<net.Socket>();
  server.on("connection", (socket: net.Socket) => sockets.add(socket));
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as net.AddressInfo).port;
}

test("with mutual TLS: the host sees our certificate, and one that is not of the mesh is ill", async (t) => {
  const [authority, stranger] = await Promise.all([testAuthority(), testAuthority()]);
  const [own, host, foreign] = await Promise.all([authority.issue(), authority.issue(), stranger.issue()]);
  const clients = new Set<string>();
  const server = (identity: typeof host): https.Server =>
    https.createServer(
      { cert: identity.chainPem, key: identity.keyPem, ca: authority.rootPem, requestCert: true },
      (request, response) => {
        const { subjectaltname = "none" } = (request.socket as import("node:tls").TLSSocket).getPeerCertificate();
        clients.add(subjectaltname);
        response.end();
      },
    );
  const ports = [await listening(t, server(host)), await listening(t, server(foreign))];
  const transport = {
    transport_socket: {
      name: "envoy.transport_sockets.tls",
      typed_config: {
        "@type": extension("transport_sockets.tls.v3.UpstreamTlsContext"),
        common_tls_context: {
          tls_certificates: [{ certificate_chain: inline(own.chainPem), private_key: inline(own.keyPem) }],
          validation_context: { trusted_ca: inline(authority.rootPem) },
        },
      },
    },
  };
  const { flags, cluster } = checkedCluster(t, ports, { http_health_check: { path: "/" } }, transport);
  await waitFor(() => cluster.healthChecker!.isWarm, { what: "the first checks" });
  assert.deepEqual(flags(), ["", "failed_active_hc"]);
  assert.deepEqual([...clients], ["URI:spiffe://cluster.local/ns/shop/sa/catalog"]);
});

test("a server of grpc-js that says how its services are", async (t) => {
  const server = new grpc.Server();
  let answer = Buffer.from([8, 1]);
  const asked = new Set<string>();
  const bytes = { serialize: (value: Buffer) => value, deserialize: (value: Buffer) => value };
  server.addService(
    {
      Check: {
        path: "/grpc.health.v1.Health/Check",
        requestStream: false,
        responseStream: false,
        requestSerialize: bytes.serialize,
        requestDeserialize: bytes.deserialize,
        responseSerialize: bytes.serialize,
        responseDeserialize: bytes.deserialize,
      },
    },
    {
      Check: (call: grpc.ServerUnaryCall<Buffer, Buffer>, done: grpc.sendUnaryData<Buffer>) => {
        asked.add(call.request.subarray(2).toString());
        if (answer.length === 0) done({ code: grpc.status.NOT_FOUND });
        else done(null, answer);
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  t.after(() => server.forceShutdown());
  const check = { grpc_health_check: { service_name: "shop.Catalog" } };
  const { flags } = checkedCluster(t, [port], check, { typed_extension_protocol_options: http2Options });
  await waitFor(() => flags()[0] === "", { what: "SERVING" });
  answer = Buffer.from([8, 2]);
  await waitFor(() => flags()[0] !== "", { what: "NOT_SERVING" });
  answer = Buffer.from([8, 1]);
  await waitFor(() => flags()[0] === "", { what: "SERVING again" });
  answer = Buffer.alloc(0);
  await waitFor(() => flags()[0] !== "", { what: "a service that is not known" });
  assert.deepEqual([...asked], ["shop.Catalog"]);
});

for (const reuse_connection of [true, false]) {
  test(`checks ${reuse_connection ? "keep their connection" : "have a connection each"}`, async (t) => {
    const sockets = new Set<net.Socket>();
    let checks = 0;
    const port = await listening(
      t,
      http.createServer((request, response) => {
        checks += 1;
        sockets.add(request.socket);
        response.end();
      }),
    );
    checkedCluster(t, [port], { http_health_check: { path: "/" }, reuse_connection });
    await waitFor(() => checks >= 3, { what: "three checks" });
    assert.equal(sockets.size, reuse_connection ? 1 : checks);
  });
}

test("a host that goes away gracefully during a check may answer it; the next has a connection of its own", async (t) => {
  let sessions = 0;
  const answered: boolean[] = [];
  const server = http2.createServer();
  server.on("session", () => (sessions += 1));
  server.on("stream", (stream: http2.ServerHttp2Stream) => {
    stream.session!.goaway(http2.constants.NGHTTP2_NO_ERROR, stream.id);
    stream.respond({ ":status": 200 }, { endStream: true });
    answered.push(true);
  });
  const port = await listening(t, server);
  const check = { http_health_check: { path: "/", codec_client_type: "HTTP2" } };
  const { flags, count } = checkedCluster(t, [port], check);
  await waitFor(() => answered.length >= 3, { what: "three checks" });
  assert.deepEqual([flags(), count("failure")], [[""], 0]);
  assert.ok(sessions >= 3);
});

interface HostileHost {
  readonly name: string;
  readonly check: object;
  readonly protocol: "TCP" | "HTTP/1.1" | "HTTP/2";
  /** What is done to a check: raw bytes on its connection, or on its stream. */
  readonly onSocket?: (socket: net.Socket) => void;
  readonly onStream?: (stream: http2.ServerHttp2Stream) => void;
  readonly counter: "answer_too_long" | "network_failure";
  /** The next check is far off: what is counted, once, comes between two. */
  readonly isBetween?: true;
}

const http1Check = { http_health_check: { path: "/" } };
const http2Check = { http_health_check: { path: "/", codec_client_type: "HTTP2" } };
const grpcCheck = { grpc_health_check: {} };
const manyBytes = Buffer.alloc(64 * 1024, "x");

/** For ever, as fast as it is taken. */
function flood(stream: Writable, piece: Buffer | string): void {
  const write = (): void => {
    while (!stream.destroyed && stream.write(piece));
  };
  stream.on("drain", write);
  write();
}

const hostileHosts: readonly HostileHost[] = [
  {
    name: "an endless body",
    check: http1Check,
    protocol: "HTTP/1.1",
    onSocket: (socket) => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      flood(socket, manyBytes);
    },
    counter: "answer_too_long",
  },
  {
    name: "endless interim answers",
    check: http1Check,
    protocol: "HTTP/1.1",
    onSocket: (socket) => flood(socket, "HTTP/1.1 103 Early Hints\r\n\r\n"),
    counter: "network_failure",
  },
  {
    name: "an endless body over HTTP/2",
    check: http2Check,
    protocol: "HTTP/2",
    onStream: (stream) => {
      stream.respond({ ":status": 200 });
      flood(stream, manyBytes);
    },
    counter: "answer_too_long",
  },
  {
    name: "an endless message of gRPC",
    check: grpcCheck,
    protocol: "HTTP/2",
    onStream: (stream) => {
      stream.respond({ ":status": 200, "content-type": "application/grpc" });
      flood(stream, manyBytes);
    },
    counter: "answer_too_long",
  },
  {
    name: "trailers that are too large",
    check: grpcCheck,
    protocol: "HTTP/2",
    onStream: (stream) => {
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "x-large": "x".repeat(200_000) }));
      stream.end(Buffer.from([0, 0, 0, 0, 2, 8, 1]));
    },
    counter: "network_failure",
  },
  {
    name: "GOAWAY with an error at each check",
    check: http2Check,
    protocol: "HTTP/2",
    onStream: (stream) => stream.session!.destroy(new Error("go"), http2.constants.NGHTTP2_ENHANCE_YOUR_CALM),
    counter: "network_failure",
  },
  {
    name: "bytes behind the answer of TCP",
    check: { tcp_health_check: { send: { text: "61" }, receive: [{ text: "62" }] } },
    protocol: "TCP",
    onSocket: (socket) => {
      socket.write("b");
      setImmediate(flood, socket, manyBytes);
    },
    counter: "answer_too_long",
    isBetween: true,
  },
];

for (const { name, check, protocol, onSocket, onStream, counter, isBetween } of hostileHosts) {
  test(`a hostile host: ${name}`, async (t) => {
    let writtenBytes = 0;
    const server = protocol === "HTTP/2" ? http2.createServer() : createServer();
    server.on("connection", (socket: net.Socket) => {
      socket.on("error", () => undefined);
      socket.on("close", () => (writtenBytes += socket.bytesWritten));
      if (onSocket !== undefined) socket.once("data", () => onSocket(socket));
    });
    server.on("session", (session: http2.ServerHttp2Session) => session.on("error", () => undefined));
    server.on("stream", (stream: http2.ServerHttp2Stream) => {
      stream.on("error", () => undefined);
      onStream!(stream);
    });
    const port = await listening(t, server);
    const interval = isBetween === true ? "60s" : "0.01s";
    const repeated = { ...check, interval, no_traffic_interval: interval };
    const more = protocol === "HTTP/2" ? { typed_extension_protocol_options: http2Options } : {};
    const { cluster, flags, count } = checkedCluster(t, [port], repeated, more);
    const failures = isBetween === true ? 1 : 3;
    await waitFor(() => count(counter) >= failures, { what: "failed checks", details: () => flags().join() });
    cluster.stop();
    // What waits in the kernel's buffers is the host's.
    const mostBytes = (count("attempt") + 1) * 16_000_000;
    assert.ok(writtenBytes < mostBytes, `${writtenBytes} bytes were taken`);
  });
}
