// TLS to hosts on real sockets: sessions are taken up again, hosts with different transports are kept apart, changed
// secrets make new connections.
import assert from "node:assert/strict";
import type net from "node:net";
import { type TestContext, test } from "node:test";
import tls from "node:tls";
import { MetricRegistry } from "@tulle/telemetry";
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import type { RuntimeCluster } from "../cluster/runtime-cluster.ts";
import { compileCluster } from "../compile/compile-cluster.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import { accepted, fromConfiguration } from "../testing/from-configuration.ts";
import { forwardTo } from "../testing/hand-built-runtime.ts";
import { Client, runProxy, until } from "../testing/running-proxy.ts";
import { type IssuedIdentity, testAuthority } from "../testing/test-authority.ts";
import { SecretSlotTable } from "../tls/secret-slot.ts";
import { inline } from "../testing/envoy-json.ts";

const authority = await testAuthority();
const host = await authority.issue({ dns: ["one.test", "two.test"] });
const [first, second] = [await authority.issue(), await authority.issue()];
const trusted = { trusted_ca: inline(authority.rootPem) };

interface TlsHost {
  readonly port: number;
  /** Of each connection, in order. */
  readonly seen: { readonly reused: boolean; readonly serverName: string; readonly client: string | undefined }[];
}

async function tlsHost(t: TestContext, options: tls.TlsOptions = {}): Promise<TlsHost> {
  const seen: TlsHost["seen"] = [];
  const server = tls.createServer(
    {
      cert: host.chainPem,
      key: host.keyPem,
      ca: authority.rootPem,
      requestCert: true,
      rejectUnauthorized: false,
      ...options,
    },
    (socket) => {
      const { servername } = socket as tls.TLSSocket & { readonly servername: string | false };
      seen.push({
        reused: socket.isSessionReused(),
        serverName: servername === false ? "" : servername,
        client: socket.getPeerX509Certificate()?.serialNumber,
      });
      socket.on("error", () => undefined);
      socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
    },
  );
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const sockets = new Set<net.Socket>();
  server.on("connection", (socket: net.Socket) => sockets.add(socket));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { port: (server.address() as net.AddressInfo).port, seen };
}

const upstreamTls = (common: object, context: object = {}): object => ({
  name: "envoy.transport_sockets.tls",
  typed_config: {
    "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
    common_tls_context: common,
    ...context,
  },
});

interface Compiled {
  readonly cluster: RuntimeCluster;
  readonly metrics: MetricRegistry;
  readonly secrets: SecretSlotTable;
}

function clusterOf(port: number, extra: object, endpoint: object = {}): Compiled {
  const metrics = new MetricRegistry();
  const secrets = new SecretSlotTable();
  const scope = detachedScope({
    metrics,
    secretSlot: (name, source, timeoutMs) => secrets.get(name, source, timeoutMs),
  });
  const message = fromConfiguration(ClusterSchema, {
    name: "c",
    type: "STATIC",
    load_assignment: {
      cluster_name: "c",
      endpoints: [
        {
          lb_endpoints: [
            { endpoint: { address: { socket_address: { address: "127.0.0.1", port_value: port } } }, ...endpoint },
          ],
        },
      ],
    },
    ...extra,
  });
  return { cluster: accepted(compileCluster(message, scope)).cluster, metrics, secrets };
}

async function request(client: Client, authorityText = "a"): Promise<void> {
  client.send(`GET / HTTP/1.1\r\nHost: ${authorityText}\r\n\r\n`);
  await client.receive(/ok$/);
}

for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
  test(`${version}: the next connection takes the session up again, and one after a rotation does not`, async (t) => {
    const back = await tlsHost(t, { maxVersion: version });
    const sds = { ads: {}, resource_api_version: "V3" };
    const { cluster, secrets } = clusterOf(back.port, {
      max_requests_per_connection: 1,
      transport_socket: upstreamTls({
        tls_certificate_sds_secret_configs: [{ name: "default", sds_config: sds }],
        validation_context: trusted,
      }),
    });
    const slot = secrets.get("default", { kind: "ads" }, 0);
    const show = ({ chainPem, keyPem, leaf }: IssuedIdentity): void =>
      slot.put({
        type: "tls_certificate",
        chainPem,
        keyPem,
        chain: [leaf],
        keyType: "ec",
        dnsNames: [],
        digest: leaf.fingerprint256,
      });
    show(first);
    const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
    const client = await Client.connect(t, proxy.port);
    await request(client);
    await request(client);
    show(second);
    await request(client);
    await request(client);
    assert.deepEqual(
      back.seen.map(({ reused }) => reused),
      [false, true, false, true],
    );
    const [one, two] = [first.leaf.serialNumber, second.leaf.serialNumber];
    assert.deepEqual(
      back.seen.map(({ client: serial }) => serial),
      [one, one, two, two],
    );
  });
}

test("a session does not outlive the host's certificate", async (t) => {
  const back = await tlsHost(t);
  const { cluster } = clusterOf(back.port, {
    max_requests_per_connection: 1,
    transport_socket: upstreamTls({ validation_context: trusted }),
  });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const client = await Client.connect(t, proxy.port);
  await request(client);
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() + 10 * 365 * 86_400_000 });
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  // OpenSSL, which knows of no other time, would let a new session pass.
  assert.match(await client.receive(/(?:ok|failure)$/), /^HTTP\/1\.1 503 /);
});

test("max_session_keys 0: nothing is taken up again", async (t) => {
  const back = await tlsHost(t);
  const { cluster } = clusterOf(back.port, {
    max_requests_per_connection: 1,
    transport_socket: upstreamTls({ validation_context: trusted }, { max_session_keys: 0 }),
  });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const client = await Client.connect(t, proxy.port);
  for (let count = 0; count < 3; count += 1) await request(client);
  assert.deepEqual(
    back.seen.map(({ reused }) => reused),
    [false, false, false],
  );
});

test("a host's metadata choose its transport, and a change of them makes new connections", async (t) => {
  const back = await tlsHost(t);
  const metadata = (value: object): object => ({
    metadata: { filter_metadata: { "envoy.transport_socket_match": value } },
  });
  const matches = (sni: string): object => upstreamTls({ validation_context: trusted }, { sni });
  const { cluster } = clusterOf(
    back.port,
    {
      transport_socket: matches("default.test"),
      transport_socket_matches: [
        { name: "one", match: { tlsMode: "one" }, transport_socket: matches("one.test") },
        { name: "two", match: { tlsMode: "two", zone: "z" }, transport_socket: matches("two.test") },
      ],
    },
    metadata({ tlsMode: "one" }),
  );
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const client = await Client.connect(t, proxy.port);
  const [only] = cluster.hosts;
  const names = (): string[] => back.seen.map(({ serverName }) => serverName);
  await request(client);
  await request(client);
  assert.deepEqual(names(), ["one.test"]);
  for (const tlsMatch of [{ tlsMode: "two", zone: ["y", "z"] }, { tlsMode: "two" }, { tlsMode: ["one"] }]) {
    only!.metadata = { "envoy.transport_socket_match": tlsMatch };
    await request(client);
  }
  assert.deepEqual(names(), ["one.test", "two.test", "default.test", "one.test"]);
  await until(
    () => cluster.stats.upstreamConnectionsActive.value === 1,
    () => "connections of former transports to go",
  );
});

test("auto_sni: requests of different hosts never share a connection", async (t) => {
  const back = await tlsHost(t);
  const { cluster } = clusterOf(back.port, {
    transport_socket: upstreamTls({ validation_context: trusted }),
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        upstream_http_protocol_options: { auto_sni: true, auto_san_validation: true },
        explicit_http_config: { http_protocol_options: {} },
      },
    },
  });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const client = await Client.connect(t, proxy.port);
  for (const name of ["one.test", "two.test:8443", "ONE.test", "two.test"]) await request(client, name);
  assert.deepEqual(
    back.seen.map(({ serverName }) => serverName),
    ["one.test", "two.test"],
  );
  client.send("GET / HTTP/1.1\r\nHost: three.test\r\n\r\n");
  await client.receive(/remote connection failure$/);
  assert.match(proxy.infos.at(-1)!.upstreamTransportFailureReason!, /verify cert failed: SAN matcher/);
});

test("auto_sni: names that come and go make no more connections than the cluster may have", async (t) => {
  const back = await tlsHost(t);
  const { cluster } = clusterOf(back.port, {
    transport_socket: upstreamTls({ validation_context: trusted }),
    circuit_breakers: { thresholds: [{ max_connections: 3 }] },
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        upstream_http_protocol_options: { auto_sni: true },
        explicit_http_config: { http_protocol_options: {} },
      },
    },
  });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const client = await Client.connect(t, proxy.port);
  for (let number = 0; number < 12; number += 1) await request(client, `name-${number}.test`);
  assert.equal(back.seen.length, 12);
  await until(
    () => cluster.stats.upstreamConnectionsActive.value <= 3,
    () => `${cluster.stats.upstreamConnectionsActive.value} connections to be three`,
  );
});
