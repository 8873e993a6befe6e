// The front door's TLS as it lives: secrets that change, sessions that are taken up again, hellos that come slowly or
// in pieces or never, listeners that drain meanwhile.
import assert from "node:assert/strict";
import net from "node:net";
import { before, type TestContext, test } from "node:test";
import tls from "node:tls";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import { ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { SecretSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import { compileListener } from "./compile-listener.ts";
import { compileSecret } from "../compile/compile-secret.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import { DataPath } from "../worker/data-path.ts";
import { accepted, fromConfiguration } from "../testing/from-configuration.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { Client, until } from "../testing/running-proxy.ts";
import { type TestCertificate, testCertificate } from "../../../../tests/tools/certificates.ts";
import { SecretSlotTable } from "../tls/secret-slot.ts";
import { ListenerHost } from "./listener-host.ts";
import { extension, inline, loopback, router } from "../testing/envoy-json.ts";

const uri = "URI:spiffe://cluster.local/ns/shop/sa/web";

let authority: TestCertificate;
let server: TestCertificate;
let renewed: TestCertificate;
let client: TestCertificate;

before(async () => {
  authority = await testCertificate({ subject: "/O=cluster.local", isAuthority: true });
  [server, renewed, client] = await Promise.all([
    testCertificate({ subject: "/CN=first", names: ["DNS:a.example"], issuer: authority }),
    testCertificate({ subject: "/CN=second", names: ["DNS:a.example"], issuer: authority }),
    testCertificate({ names: [uri], issuer: authority }),
  ]);
});

const manager = {
  name: "manager",
  typed_config: {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "s",
    route_config: {
      name: "r",
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [{ match: { prefix: "/" }, direct_response: { status: 200, body: { inline_string: "ok" } } }],
        },
      ],
    },
    http_filters: [router],
  },
};

const inspector = {
  name: "tls",
  typed_config: { "@type": extension("filters.listener.tls_inspector.v3.TlsInspector") },
};

interface FrontDoorOptions {
  readonly identity?: TestCertificate;
  readonly context?: object;
  readonly listener?: object;
  readonly chain?: object;
  readonly inspects?: boolean;
}

interface FrontDoor {
  readonly port: number;
  readonly host: ListenerHost;
  readonly metrics: MetricRegistry;
  readonly log: string[];
  apply(options: FrontDoorOptions): Promise<void>;
  counter(name: string): number;
  /** The secret `default` of the aggregated stream becomes this one. */
  rotate(identity: TestCertificate): void;
}

async function frontDoor(t: TestContext, options: FrontDoorOptions = {}, clock?: ManualClock): Promise<FrontDoor> {
  const metrics = new MetricRegistry();
  const log: string[] = [];
  const logging = new Logging({ level: "info", sink: (entry) => void log.push(JSON.stringify(entry)) });
  const dataPath = new DataPath({ logging, ...(clock !== undefined && { clock }) });
  const host = new ListenerHost({ dataPath, inheritedDescriptors: new Map() });
  t.after(() => host.stop());
  const secrets = new SecretSlotTable();
  const scope = detachedScope({
    metrics,
    secretSlot: (name, source, timeoutMs) => secrets.get(name, source, timeoutMs),
  });
  const apply = async (changed: FrontDoorOptions): Promise<void> => {
    const listener = accepted(
      compileListener(fromConfiguration(ListenerSchema, configuration(changed)), scope),
    ).listener;
    assert.equal(await host.apply(listener), undefined);
  };
  await apply(options);
  return {
    port: host.boundAddresses().get("door")![0]!.port,
    host,
    metrics,
    log,
    apply,
    rotate: (identity) => {
      const secret = fromConfiguration(SecretSchema, {
        name: "default",
        tls_certificate: { certificate_chain: inline(identity.certificate), private_key: inline(identity.key) },
      });
      secrets.get("default", { kind: "ads" }, 0).put(accepted(compileSecret(secret, {})));
    },
    counter: (name) => {
      for (const { statName, metric } of metrics.allSeries()) {
        if (statName === `listener.door.${name}` && "value" in metric) return Number(metric.value);
      }
      return 0;
    },
  };
}

function configuration({ identity = server, context, listener, chain, inspects = false }: FrontDoorOptions): object {
  return {
    name: "door",
    stat_prefix: "door",
    address: loopback(0),
    ...(inspects && { listener_filters: [inspector] }),
    filter_chains: [
      {
        name: "tls",
        ...(inspects && { filter_chain_match: { transport_protocol: "tls" } }),
        filters: [manager],
        transport_socket: {
          name: "tls",
          typed_config: {
            "@type": extension("transport_sockets.tls.v3.DownstreamTlsContext"),
            common_tls_context: {
              tls_certificates: [
                { certificate_chain: inline(identity.certificate), private_key: inline(identity.key) },
              ],
              validation_context: { trusted_ca: inline(authority.certificate) },
            },
            ...context,
          },
        },
        ...chain,
      },
      ...(inspects ? [{ name: "raw", filters: [manager] }] : []),
    ],
    ...listener,
  };
}

class TlsClient {
  readonly socket: tls.TLSSocket;
  received = "";
  ended = false;
  session: Buffer | undefined = undefined;

  constructor(t: TestContext, port: number, options: tls.ConnectionOptions = {}) {
    this.socket = tls.connect({
      port,
      host: "127.0.0.1",
      servername: "a.example",
      rejectUnauthorized: false,
      ...options,
    });
    t.after(() => this.socket.destroy());
    this.socket.on("error", () => undefined);
    this.socket.on("data", (data) => (this.received += data.toString("latin1")));
    this.socket.on("session", (session) => (this.session = session));
    this.socket.on("close", () => (this.ended = true));
  }

  async exchange(): Promise<string> {
    this.received = "";
    this.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await until(
      () => this.received.endsWith("ok") || this.ended,
      () => "an answer",
    );
    return this.received;
  }

  async end(): Promise<void> {
    await until(
      () => this.ended,
      () => "the end",
    );
  }
}

const shown = (identity: TestCertificate): tls.ConnectionOptions => ({ cert: identity.certificate, key: identity.key });

test("a new certificate serves new connections, and old ones live on to their next answer", async (t) => {
  const door = await frontDoor(t);
  const first = new TlsClient(t, door.port);
  assert.match(await first.exchange(), /200 OK/);
  assert.equal(first.socket.getPeerCertificate().subject.CN, "first");
  await door.apply({ identity: renewed });
  const second = new TlsClient(t, door.port);
  assert.match(await second.exchange(), /200 OK/);
  assert.equal(second.socket.getPeerCertificate().subject.CN, "second");
  assert.match(await first.exchange(), /connection: close/);
});

test("a secret that changes serves new connections, and old ones go on", async (t) => {
  const source = { ads: {}, resource_api_version: "V3", initial_fetch_timeout: "0s" };
  const references = [{ name: "default", sds_config: source }];
  const door = await frontDoor(t, {
    context: { common_tls_context: { tls_certificate_sds_secret_configs: references } },
  });
  const early = new TlsClient(t, door.port);
  await early.end();
  assert.match(door.log.join(""), /Secret is not supplied by SDS/);
  door.rotate(server);
  const first = new TlsClient(t, door.port);
  assert.match(await first.exchange(), /200 OK/);
  door.rotate(renewed);
  const second = new TlsClient(t, door.port);
  assert.match(await second.exchange(), /200 OK/);
  assert.equal(second.socket.getPeerCertificate().subject.CN, "second");
  assert.doesNotMatch(await first.exchange(), /connection: close/);
  assert.equal(first.socket.getPeerCertificate().subject.CN, "first");
});

test("secrets and listeners that change leave the counters as they are", async (t) => {
  const source = { ads: {}, resource_api_version: "V3", initial_fetch_timeout: "0s" };
  const common_tls_context = {
    tls_certificate_sds_secret_configs: [{ name: "default", sds_config: source }],
    validation_context: { trusted_ca: inline(authority.certificate) },
  };
  const context = { common_tls_context, require_client_certificate: true };
  const door = await frontDoor(t, { context });
  const changes: readonly (() => unknown)[] = [
    () => door.rotate(server),
    () => door.rotate(renewed),
    () => door.apply({ context: { ...context, session_timeout: "60s" } }),
    () => door.apply({ context, chain: { name: "other" } }),
  ];
  for (const [index, change] of changes.entries()) {
    await change();
    assert.match(await new TlsClient(t, door.port, shown(client)).exchange(), /200 OK/);
    await new TlsClient(t, door.port).end();
    await until(
      () => door.counter("ssl.fail_verify_no_cert") === index + 1,
      () => `the refusal: ${door.counter("ssl.fail_verify_no_cert")}`,
    );
    assert.equal(door.counter("ssl.handshake"), index + 1);
    assert.equal(door.counter("downstream_cx_total"), 2 * (index + 1));
  }
});

test("a session is taken up again with the client's certificate, unless that is switched off", async (t) => {
  for (const tickets of [true, false]) {
    const context = { require_client_certificate: true, disable_stateless_session_resumption: !tickets };
    const door = await frontDoor(t, { context });
    const first = new TlsClient(t, door.port, { ...shown(client), maxVersion: "TLSv1.3" });
    assert.match(await first.exchange(), /200 OK/);
    await until(
      () => first.session !== undefined,
      () => "a session",
    );
    const second = new TlsClient(t, door.port, { ...shown(client), session: first.session! });
    assert.match(await second.exchange(), /200 OK/);
    assert.equal(second.socket.isSessionReused(), tickets);
    assert.equal(door.counter("ssl.session_reused"), tickets ? 1 : 0);
    assert.equal(door.counter("ssl.no_certificate"), 0);
  }
});

test("a session does not outlive the certificate that it began with", async (t) => {
  const clock = new ManualClock();
  const door = await frontDoor(t, { context: { require_client_certificate: true } }, clock);
  const first = new TlsClient(t, door.port, shown(client));
  assert.match(await first.exchange(), /200 OK/);
  await until(
    () => first.session !== undefined,
    () => "a session",
  );
  clock.advance(365 * 86_400_000);
  const second = new TlsClient(t, door.port, { ...shown(client), session: first.session! });
  await second.end();
  assert.equal(second.received, "");
  assert.equal(door.counter("ssl.fail_verify_error"), 1);
});

test("a session without a certificate opens nothing that asks for one", async (t) => {
  const tls_certificates = [{ certificate_chain: inline(server.certificate), private_key: inline(server.key) }];
  const asking = (validation: object): object => ({
    common_tls_context: {
      tls_certificates,
      validation_context: { trusted_ca: inline(authority.certificate), ...validation },
    },
  });
  const names = { match_typed_subject_alt_names: [{ san_type: "URI", matcher: { exact: uri.slice("URI:".length) } }] };
  const first = await frontDoor(t, { context: asking({}) });
  for (const stricter of [asking(names), { ...asking({}), require_client_certificate: true }]) {
    // The same material, so that OpenSSL knows the session.
    const door = await frontDoor(t, { context: stricter });
    const guest = new TlsClient(t, first.port);
    assert.match(await guest.exchange(), /200 OK/);
    await until(
      () => guest.session !== undefined,
      () => "a session",
    );
    const intruder = new TlsClient(t, door.port, { session: guest.session! });
    assert.equal(await intruder.exchange(), "");
    assert.equal(door.counter("ssl.fail_verify_no_cert"), 1);
    assert.match(await new TlsClient(t, door.port, shown(client)).exchange(), /200 OK/);
  }
});

test("what is compared with nothing is no proof", async (t) => {
  const tls_certificates = [{ certificate_chain: inline(server.certificate), private_key: inline(server.key) }];
  const common_tls_context = { tls_certificates, validation_context: {} };
  const forged = await testCertificate({ names: [uri] });
  const open = await frontDoor(t, { context: { common_tls_context } });
  assert.match(await new TlsClient(t, open.port, shown(forged)).exchange(), /200 OK/);
  assert.equal(open.counter("ssl.no_certificate"), 1);
  const closed = await frontDoor(t, { context: { common_tls_context, require_client_certificate: true } });
  assert.equal(await new TlsClient(t, closed.port, shown(forged)).exchange(), "");
  assert.equal(closed.counter("ssl.fail_verify_no_cert"), 1);
});

for (const { offers, expected } of [
  { offers: ["h2", "http/1.1"], expected: "http/1.1" },
  { offers: ["foo"], expected: false },
  { offers: undefined, expected: false },
]) {
  test(`ALPN ${String(offers)}: ${String(expected)}`, async (t) => {
    const tls_certificates = [{ certificate_chain: inline(server.certificate), private_key: inline(server.key) }];
    const door = await frontDoor(t, {
      context: { common_tls_context: { tls_certificates, alpn_protocols: ["http/1.1"] } },
    });
    const caller = new TlsClient(t, door.port, offers === undefined ? {} : { ALPNProtocols: offers });
    assert.match(await caller.exchange(), /200 OK/);
    assert.equal(caller.socket.alpnProtocol, expected);
  });
}

test("a refused client is told in the log and disturbs nobody", async (t) => {
  const door = await frontDoor(t, { context: { require_client_certificate: true } });
  const good = new TlsClient(t, door.port, shown(client));
  assert.match(await good.exchange(), /200 OK/);
  const bad = new TlsClient(t, door.port, shown(await testCertificate({ names: [uri] })));
  bad.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await bad.end();
  assert.equal(bad.received, "");
  assert.match(door.log.join(""), /TLS handshake failed.*CERTIFICATE_VERIFY_FAILED/);
  assert.match(await good.exchange(), /200 OK/);
  assert.equal(door.host.activeConnections, 1);
});

test("a hello in pieces, with what follows it, finds its chain", async (t) => {
  const door = await frontDoor(t, { inspects: true });
  // Every byte of the client's goes through one by one.
  const relay = net.createServer((from) => {
    const to = net.connect(door.port, "127.0.0.1");
    from.on("error", () => undefined);
    to.on("error", () => undefined);
    to.setNoDelay(true);
    to.pipe(from);
    from.on("data", (data: Buffer) => {
      for (const byte of data) to.write(Buffer.from([byte]));
    });
    from.on("end", () => to.end());
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  t.after(() => relay.close());
  const through = new TlsClient(t, (relay.address() as net.AddressInfo).port);
  assert.match(await through.exchange(), /200 OK/);
  assert.match(await through.exchange(), /200 OK/);
  through.socket.destroy();
});

test("plain text goes to the plain chain, its first bytes with it", async (t) => {
  const door = await frontDoor(t, { inspects: true });
  const plain = await Client.connect(t, door.port);
  plain.send("G");
  plain.send("ET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await plain.receive(/ok$/);
  plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await plain.receive(/ok$/);
});

for (const continues of [false, true]) {
  test(`a client that says nothing: ${continues ? "the chain that needs no word" : "closed"} after the time`, async (t) => {
    const clock = new ManualClock();
    const listener = { listener_filters_timeout: "2s", continue_on_listener_filters_timeout: continues };
    const door = await frontDoor(t, { inspects: true, listener }, clock);
    const silent = await Client.connect(t, door.port);
    await until(
      () => door.host.activeConnections === 1,
      () => "the connection",
    );
    clock.advance(1900);
    assert.equal(door.counter("downstream_pre_cx_timeout"), 0);
    clock.advance(200);
    assert.equal(door.counter("downstream_pre_cx_timeout"), 1);
    if (continues) {
      silent.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await silent.receive(/ok$/);
    } else {
      await silent.receiveEnd();
      assert.equal(door.host.activeConnections, 0);
    }
  });
}

test("a hello that never ends is cut at its limit", async (t) => {
  const door = await frontDoor(t, { inspects: true });
  const endless = await Client.connect(t, door.port);
  // A message of 16,000 bytes in fragments of one, whose headers make it too much.
  endless.socket.write(Buffer.from([22, 3, 1, 0, 4, 1, 0, 0x3e, 0x80]));
  endless.socket.write(Buffer.concat(Array.from({ length: 4000 }, () => Buffer.from([22, 3, 1, 0, 1, 7]))));
  await endless.receiveEnd();
  assert.equal(door.host.activeConnections, 0);
  const counted = [...door.metrics.allSeries()].find(
    ({ statName }) => statName === "tls_inspector.client_hello_too_large",
  );
  assert.ok(counted !== undefined && "value" in counted.metric && counted.metric.value === 1);
});

test("a handshake that stands still ends after its time", async (t) => {
  const clock = new ManualClock();
  const door = await frontDoor(t, { chain: { transport_socket_connect_timeout: "3s" } }, clock);
  const silent = await Client.connect(t, door.port);
  await until(
    () => door.host.activeConnections === 1,
    () => "the connection",
  );
  clock.advance(3100);
  await silent.receiveEnd();
  await until(
    () => door.host.activeConnections === 0,
    () => "nothing left",
  );
  assert.equal(door.counter("downstream_cx_transport_socket_connect_timeout"), 1);
  assert.match(door.log.join(""), /transport_socket_timeout/);
});

test("a client that goes away in its handshake leaves nothing", async (t) => {
  for (const inspects of [false, true]) {
    const door = await frontDoor(t, { inspects });
    for (const bytes of [Buffer.alloc(0), Buffer.from([22, 3]), Buffer.from([22, 3, 1, 2, 0, 1])]) {
      const gone = await Client.connect(t, door.port);
      gone.socket.write(bytes);
      await until(
        () => door.host.activeConnections === 1,
        () => "the connection",
      );
      gone.socket.destroy();
      await until(
        () => door.host.activeConnections === 0,
        () => "nothing left",
      );
    }
  }
});

test("a connection in its handshake is drained once it is established", async (t) => {
  const door = await frontDoor(t);
  const slow = await Client.connect(t, door.port);
  await until(
    () => door.host.activeConnections === 1,
    () => "the connection",
  );
  const drained = door.host.drain({ leastMs: 0, mostMs: 10_000 });
  const over = tls.connect({ socket: slow.socket, servername: "a.example", rejectUnauthorized: false });
  let received = "";
  over.on("data", (data) => (received += data.toString("latin1")));
  over.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await drained;
  await until(
    () => /connection: close[^]*ok$/.test(received),
    () => `the last answer, not ${received}`,
  );
});

test("a client of TLS 1.2 shakes hands once", async (t) => {
  const door = await frontDoor(t);
  const twice = new TlsClient(t, door.port, { maxVersion: "TLSv1.2" });
  assert.match(await twice.exchange(), /200 OK/);
  let outcome: string | undefined;
  twice.socket.on("error", (error) => (outcome ??= error.message));
  twice.socket.renegotiate({}, (error) => (outcome ??= error?.message ?? "done"));
  await until(
    () => outcome !== undefined,
    () => "the outcome",
  );
  assert.match(outcome!, /no renegotiation/);
});
