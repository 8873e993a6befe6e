// Connections that wait for a network filter's word: what the client says and does meanwhile is neither lost nor
// forgotten.
import assert from "node:assert/strict";
import net from "node:net";
import { type TestContext, test } from "node:test";
import tls from "node:tls";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import { ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { compileListener } from "./compile-listener.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import { DataPath } from "../worker/data-path.ts";
import type { NetworkFilter, Verdict } from "./network-filter.ts";
import { accepted, fromConfiguration } from "../testing/from-configuration.ts";
import { handBuiltCluster } from "../testing/hand-built-runtime.ts";
import { type Backend, runBackend, until } from "../testing/running-proxy.ts";
import { testAuthority } from "../testing/test-authority.ts";
import { ListenerHost } from "./listener-host.ts";
import { extension, inline, loopback } from "../testing/envoy-json.ts";

const authority = await testAuthority();
const server = await authority.issue({ dns: ["a.test"] });

const inspector = {
  name: "tls",
  typed_config: { "@type": extension("filters.listener.tls_inspector.v3.TlsInspector") },
};
const tlsSocket = {
  name: "tls",
  typed_config: {
    "@type": extension("transport_sockets.tls.v3.DownstreamTlsContext"),
    common_tls_context: {
      tls_certificates: [{ certificate_chain: inline(server.chainPem), private_key: inline(server.keyPem) }],
    },
  },
};

/** How a connection comes to its filters. */
const ways = [
  { name: "plain", inspects: false, isTls: false },
  { name: "plain and looked at", inspects: true, isTls: false },
  { name: "TLS", inspects: false, isTls: true },
  { name: "TLS and looked at", inspects: true, isTls: true },
] as const;
type Way = (typeof ways)[number];

interface Held {
  readonly host: ListenerHost;
  readonly backend: Backend;
  readonly client: net.Socket;
  /** What the client has got, `<FIN>` at the end. */
  received(): string;
  /** Of the filter; defined once it has been asked. */
  decide: ((verdict: Verdict) => void) | undefined;
}

async function hold(t: TestContext, { inspects, isTls }: Way): Promise<Held> {
  const backend = await runBackend(t, (socket, data) => void socket.write(data));
  const scope = detachedScope({ metrics: new MetricRegistry() });
  const cluster = scope.clusterSlot("c");
  cluster.current = handBuiltCluster("c", [backend.port]);
  const message = fromConfiguration(ListenerSchema, {
    name: "l",
    address: loopback(0),
    ...(inspects && { listener_filters: [inspector] }),
    filter_chains: [
      {
        ...(isTls && { transport_socket: tlsSocket }),
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
      },
    ],
  });
  const { listener } = accepted(compileListener(message, { ...scope, clusterSlot: () => cluster }));
  const host = new ListenerHost({
    dataPath: new DataPath({ logging: new Logging({ level: "off" }) }),
    inheritedDescriptors: new Map(),
  });
  t.after(() => host.stop());
  const held: { decide: Held["decide"] } = { decide: undefined };
  const filter: NetworkFilter = {
    name: "held",
    onNewConnection: (_info, _dataPath, decide) => {
      held.decide = decide;
      return { cancel: () => undefined };
    },
  };
  const filterChains = listener.filterChains.map((chain) => ({ ...chain, networkFilters: [filter] }));
  assert.equal(await host.apply({ ...listener, filterChains, findChain: () => filterChains[0] }), undefined);
  const { port } = host.boundAddresses().get("l")![0]!;
  const target = { port, host: "127.0.0.1", allowHalfOpen: true };
  const client = isTls ? tls.connect({ ...target, rejectUnauthorized: false }) : net.connect(target);
  let received = "";
  t.after(() => client.destroy());
  client.on("error", () => undefined);
  client.on("data", (data: Buffer) => (received += data.toString()));
  client.on("end", () => (received += "<FIN>"));
  client.write("first ");
  await until(
    () => held.decide !== undefined,
    () => "the filter's question",
  );
  return Object.assign(held, { host, backend, client, received: () => received });
}

/** Lets everything that is on its way between the two ends of this process arrive. */
async function settle(): Promise<void> {
  for (let turns = 0; turns < 50; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}

for (const way of ways) {
  test(`${way.name}: what comes while it waits goes on, and so does the end`, async (t) => {
    const held = await hold(t, way);
    held.client.write("second ");
    await settle();
    held.client.end("third");
    await settle();
    assert.deepEqual(held.backend.seen, []);
    held.decide!("continue");
    await until(
      () => held.received().endsWith("<FIN>"),
      () => `the end behind ${held.received()}`,
    );
    assert.equal(held.received(), "first second third<FIN>");
    await until(
      () => held.host.activeConnections === 0,
      () => "the end of the connection",
    );
  });

  for (const verdict of ["continue", "close"] as const) {
    test(`${way.name}: a client that goes away while it waits is forgotten (${verdict})`, async (t) => {
      const held = await hold(t, way);
      await settle();
      if (way.isTls) held.client.destroy();
      else held.client.resetAndDestroy();
      await settle();
      held.decide!(verdict);
      await until(
        () => held.host.activeConnections === 0,
        () => "the connection to be forgotten",
      );
    });
  }
}
