// The TCP proxy between two TLS connections: each side's end goes on by itself, and whoever does not read stops the
// other.
import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import tls from "node:tls";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import type { Cluster } from "../../../cluster/cluster.ts";
import { compileCluster } from "../../../compile/compile-cluster.ts";
import { compileListener } from "../../../listener/compile-listener.ts";
import { detachedScope } from "../../../fields/compile-scope.ts";
import { DataPath } from "../../../worker/data-path.ts";
import { accepted, fromConfiguration } from "../../../testing/from-configuration.ts";
import { until } from "../../../testing/running-proxy.ts";
import { testAuthority } from "../../../testing/test-authority.ts";
import { ListenerHost } from "../../../listener/listener-host.ts";
import { extension, inline, loopback, staticCluster } from "../../../testing/envoy-json.ts";

const authority = await testAuthority();
const identity = await authority.issue({ dns: ["a.test"] });
const strangers = await testAuthority();
const bufferBytes = 16_384;

interface Pair {
  readonly client: tls.TLSSocket;
  /** The host's side of the connection, once it is there. */
  readonly hostSocket: () => tls.TLSSocket | undefined;
  readonly cluster: Cluster;
  readonly host: ListenerHost;
}

async function connect(
  t: TestContext,
  rootPem = authority.rootPem,
  onHost: (socket: tls.TLSSocket) => void = () => undefined,
): Promise<Pair> {
  const sockets: tls.TLSSocket[] = [];
  const server = tls.createServer({ cert: identity.chainPem, key: identity.keyPem, allowHalfOpen: true }, (socket) => {
    socket.on("error", () => undefined);
    sockets.push(socket);
    onHost(socket);
  });
  server.on("tlsClientError", () => undefined);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  const scope = detachedScope({ metrics: new MetricRegistry() });
  const { cluster } = accepted(
    compileCluster(
      fromConfiguration(
        ClusterSchema,
        staticCluster("c", [port], {
          per_connection_buffer_limit_bytes: bufferBytes,
          transport_socket: {
            name: "tls",
            typed_config: {
              "@type": extension("transport_sockets.tls.v3.UpstreamTlsContext"),
              common_tls_context: { validation_context: { trusted_ca: inline(rootPem) } },
            },
          },
        }),
      ),
      scope,
    ),
  );
  const slot = scope.clusterSlot("c");
  slot.current = cluster;
  const { listener } = accepted(
    compileListener(
      fromConfiguration(ListenerSchema, {
        name: "l",
        address: loopback(0),
        per_connection_buffer_limit_bytes: bufferBytes,
        filter_chains: [
          {
            filters: [
              {
                name: "tcp",
                typed_config: {
                  "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"),
                  stat_prefix: "t",
                  cluster: "c",
                },
              },
            ],
            transport_socket: {
              name: "tls",
              typed_config: {
                "@type": extension("transport_sockets.tls.v3.DownstreamTlsContext"),
                common_tls_context: {
                  tls_certificates: [
                    { certificate_chain: inline(identity.chainPem), private_key: inline(identity.keyPem) },
                  ],
                },
              },
            },
          },
        ],
      }),
      { ...scope, clusterSlot: () => slot },
    ),
  );
  const host = new ListenerHost({
    dataPath: new DataPath({ logging: new Logging({ level: "off" }) }),
    inheritedDescriptors: new Map(),
  });
  assert.equal(await host.apply(listener), undefined);
  t.after(() => host.stop());
  const target = { port: host.boundAddresses().get("l")![0]!.port, host: "127.0.0.1", allowHalfOpen: true };
  const client = tls.connect({ ...target, rejectUnauthorized: false });
  t.after(() => client.destroy());
  client.on("error", () => undefined);
  return { client, hostSocket: () => sockets[0], cluster, host };
}

async function bothUp(pair: Pair): Promise<tls.TLSSocket> {
  await until(
    () => pair.hostSocket() !== undefined,
    () => "the connection to the host",
  );
  return pair.hostSocket()!;
}

test("each side's end goes on by itself", async (t) => {
  const pair = await connect(t);
  const far = await bothUp(pair);
  let heard = "";
  let answered = "";
  far.on("data", (data: Buffer) => (heard += data.toString()));
  far.on("end", () => (heard += "<FIN>"));
  pair.client.on("data", (data: Buffer) => (answered += data.toString()));
  pair.client.on("end", () => (answered += "<FIN>"));
  pair.client.end("question");
  await until(
    () => heard === "question<FIN>",
    () => `the end behind ${heard}`,
  );
  far.write("late ");
  await until(
    () => answered === "late ",
    () => "an answer behind the end",
  );
  far.end("answer");
  await until(
    () => answered === "late answer<FIN>",
    () => `the end behind ${answered}`,
  );
  await until(
    () => pair.host.activeConnections === 0 && pair.cluster.stats.upstreamConnectionsActive.value === 0,
    () => "nothing left",
  );
});

for (const from of ["client", "host"] as const) {
  test(`a ${from === "client" ? "host" : "client"} that does not read stops the ${from}`, async (t) => {
    const pair = await connect(t);
    const far = await bothUp(pair);
    const [writer, reader] = from === "client" ? [pair.client, far] : [far, pair.client];
    const { upstreamBytesSent, upstreamBytesReceived } = pair.cluster.stats;
    const passed = (): number => (from === "client" ? upstreamBytesSent : upstreamBytesReceived).value;
    reader.pause();
    const total = 32 * 1024 * 1024;
    writer.end(Buffer.alloc(total));
    // Reads stand still once the buffers of both kernels are full.
    let before = -1;
    let quiet = 0;
    await until(
      () => {
        quiet = passed() > 0 && passed() === before ? quiet + 1 : 0;
        before = passed();
        return quiet > 2000;
      },
      () => "the proxy to stop reading",
    );
    assert.ok(passed() < total, `${passed()} of ${total} bytes`);
    let got = 0;
    let hasEnded = false;
    reader.on("data", (data: Buffer) => (got += data.length));
    reader.on("end", () => (hasEnded = true));
    reader.resume();
    await until(
      () => hasEnded,
      () => `the end behind ${got} bytes`,
    );
    assert.equal(got, total);
  });
}

test("a host that is not who it should be gets none of the first bytes", async (t) => {
  let heard = "";
  const pair = await connect(t, strangers.rootPem, (far) =>
    far.on("data", (data: Buffer) => (heard += data.toString())),
  );
  // They come in one piece with the end of the handshake.
  pair.client.write("secret");
  await new Promise<void>((resolve) => {
    pair.client.once("close", () => resolve());
    pair.client.resume();
    pair.client.once("end", () => pair.client.end());
  });
  assert.equal(heard, "");
  assert.ok(pair.cluster.stats.upstreamConnectFailures.value > 0);
});
