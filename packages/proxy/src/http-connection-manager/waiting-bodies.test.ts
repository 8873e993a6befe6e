// How much of a request's body waits in the proxy while nobody takes it: the limit of the listener, and over HTTP/2
// what the windows of the stream let in. Clients send far more.
import assert from "node:assert/strict";
import { once } from "node:events";
import fs from "node:fs";
import http2 from "node:http2";
import net from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import type { HttpVersion } from "../../../../tests/tools/http2-client.ts";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { openClient } from "../testing/crossing-peers.ts";
import { extension, fileAccessLog, http2Options, loopback, router, staticCluster } from "../testing/envoy-json.ts";
import { type Side, startOurs } from "../testing/parity-pair.ts";

const limitBytes = 32_768;
/** Of one read. */
const readBytes = 65_536;
/** Node's, of a host that reads nothing. */
const hostWindowBytes = 65_535;
const clientWindowBytes = 262_144;
const sentChunks = 512;
const chunk = "a".repeat(65_536);

const waitsAt = [
  { name: "for a connection", path: "/connecting", passedBytes: 0 },
  { name: "for a host that reads nothing", path: "/slow", passedBytes: hostWindowBytes },
  { name: "for such a host, and for another try", path: "/repeated", passedBytes: hostWindowBytes },
] as const;

function bootstrap(log: string, silentPort: number, slowPort: number): string {
  const limit = { per_connection_buffer_limit_bytes: limitBytes };
  const tls = { name: "tls", typed_config: { "@type": extension("transport_sockets.tls.v3.UpstreamTlsContext") } };
  const retry_policy = { retry_on: "5xx", num_retries: 2 };
  const route = (prefix: string, cluster: string, more: object = {}): object => ({
    match: { prefix },
    route: { cluster, timeout: "0s", ...more },
  });
  const routes = [
    route("/connecting", "silent"),
    route("/slow", "slow"),
    route("/repeated", "slow", { retry_policy }),
    { match: { prefix: "/" }, direct_response: { status: 200 } },
  ];
  const manager = {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "l",
    route_config: { virtual_hosts: [{ name: "all", domains: ["*"], routes }] },
    http_filters: [router],
    access_log: [fileAccessLog(log, "%REQ(:path)%\t%RESPONSE_CODE%\t%BYTES_RECEIVED%\n")],
  };
  const filters = [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }];
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: [{ name: "l", address: loopback(0), ...limit, filter_chains: [{ filters }] }],
      clusters: [
        staticCluster("silent", [silentPort], { ...limit, transport_socket: tls, connect_timeout: "300s" }),
        staticCluster("slow", [slowPort], { ...limit, typed_extension_protocol_options: http2Options }),
      ],
    },
  });
}

describe("a body that nobody takes waits under the limit", () => {
  const log = path.join(temporaryFolder("tulle-waiting-"), "access.log");
  const open = new AsyncDisposableStack();
  const sockets = new Set<net.Socket>();
  let proxy: Side;

  async function listen(server: net.Server | http2.Http2Server): Promise<number> {
    server.on("connection", (socket: net.Socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
    });
    server.listen(0, "127.0.0.1");
    open.defer(() => void server.close());
    await once(server, "listening");
    return (server.address() as net.AddressInfo).port;
  }

  before(async () => {
    const silentPort = await listen(net.createServer());
    const slow = http2.createServer();
    slow.on("stream", (stream) => void stream.on("error", () => undefined).pause());
    const slowPort = await listen(slow);
    proxy = await startOurs(log, (file) => bootstrap(file, silentPort, slowPort));
    open.defer(() => proxy.stop());
  });
  after(() => open.disposeAsync());

  /** While they are answered, the proxy has turns enough to read far more than it may. */
  async function askOthers(port: number, version: HttpVersion): Promise<void> {
    for (let turn = 0; turn < 40; turn += 1) {
      using other = openClient(version, port, "/");
      other.end();
      assert.match(await other.seen.whole(), /^200/);
    }
  }

  for (const version of ["HTTP/1.1", "HTTP/2"] as const) {
    for (const { name, path: prefix, passedBytes } of waitsAt) {
      test(`${version}: ${name}`, async () => {
        const target = `${prefix}/${version}`;
        const port = proxy.ports.get("l")!;
        using client = openClient(version, port, target);
        sockets.clear();
        for (let sent = 0; sent < sentChunks; sent += 1) client.write(chunk);
        await waitFor(() => sockets.size > 0, { what: "a connection to the host" });
        await askOthers(port, version);
        for (const socket of sockets) socket.destroy();
        const line = await waitFor(() => lineOf(target), { what: "the access log" });
        const [, status, received] = line.split("\t");
        assert.equal(status, "503");
        const mostBytes = passedBytes + limitBytes + (version === "HTTP/2" ? clientWindowBytes : readBytes);
        assert.ok(Number(received) > limitBytes, `only ${received} bytes came`);
        assert.ok(Number(received) <= mostBytes, `${received} bytes came`);
      });
    }
  }

  function lineOf(target: string): string | undefined {
    const text = fs.existsSync(log) ? fs.readFileSync(log, "utf8") : "";
    const whole = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
    return whole.find((line) => line.startsWith(`${target}\t`));
  }
});
