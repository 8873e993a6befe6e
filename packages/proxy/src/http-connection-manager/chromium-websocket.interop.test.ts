// A page's WebSocket in Chromium, by `wss:` over HTTP/1.1 and over HTTP/2, where it is an extended CONNECT (RFC 8441),
// through this proxy and a stock Envoy to an application of HTTP/1.1.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { type Browser, chromium } from "playwright-core";
import { WebSocketServer } from "ws";
import { testCertificate, type TestCertificate } from "../../../../tests/tools/certificates.ts";
import { chromiumArguments, chromiumPath } from "../../../../tests/tools/chromium-path.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { extension, inline, loopback, router, staticCluster } from "../testing/envoy-json.ts";
import { type Side, startEnvoy, startOurs } from "../testing/parity-pair.ts";

const protocols = ["http/1.1", "h2"] as const;
const largeBytes = 3_000_000;

function bootstrap(applicationPort: number, { certificate, key }: TestCertificate): string {
  const manager = {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "l",
    http2_protocol_options: { allow_connect: true },
    upgrade_configs: [{ upgrade_type: "websocket" }],
    route_config: {
      virtual_hosts: [{ name: "all", domains: ["*"], routes: [{ match: { prefix: "/" }, route: { cluster: "app" } }] }],
    },
    http_filters: [router],
  };
  const tls = (protocol: string): object => ({
    "@type": extension("transport_sockets.tls.v3.DownstreamTlsContext"),
    common_tls_context: {
      alpn_protocols: [protocol],
      tls_certificates: [{ certificate_chain: inline(certificate), private_key: inline(key) }],
    },
  });
  const filters = [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }];
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: protocols.map((protocol) => ({
        name: protocol,
        address: loopback(0),
        filter_chains: [{ transport_socket: { name: "tls", typed_config: tls(protocol) }, filters }],
      })),
      clusters: [staticCluster("app", [applicationPort])],
    },
  });
}

describe("a page's WebSocket in Chromium", () => {
  const open = new AsyncDisposableStack();
  const proxies = new Map<string, Side>();
  let browser: Browser;

  before(
    async () => {
      const server = http.createServer((_request, response) => response.end("a page"));
      new WebSocketServer({ server }).on("connection", (socket) =>
        socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary })),
      );
      server.listen(0, "127.0.0.1");
      open.defer(() => void server.close());
      await once(server, "listening");
      const certificate = await testCertificate({ names: ["DNS:localhost"] });
      const folder = temporaryFolder("tulle-chromium-websocket-");
      const make = (): string => bootstrap((server.address() as AddressInfo).port, certificate);
      const ours = await startOurs(path.join(folder, "ours.log"), make);
      open.defer(() => ours.stop());
      const envoy = await startEnvoy(folder, protocols.length, make);
      open.defer(() => envoy.stop());
      proxies.set("ours", ours).set("Envoy", envoy);
      // A page may open no `wss:` to a host whose certificate it would not take.
      const args = [...chromiumArguments, "--ignore-certificate-errors"];
      browser = await chromium.launch({ executablePath: await chromiumPath(), args });
      open.defer(() => browser.close());
    },
    { timeout: 120_000 },
  );
  after(() => open.disposeAsync());

  for (const name of ["ours", "Envoy"]) {
    for (const protocol of protocols) {
      test(`${name}, ${protocol}`, async () => {
        const page = await browser.newPage({ ignoreHTTPSErrors: true });
        const port = proxies.get(name)!.ports.get(protocol)!;
        await page.goto(`https://localhost:${port}/`);
        const seen = await page.evaluate(exchange, { url: `wss://localhost:${port}/`, largeBytes });
        await page.close();
        // Envoy makes no key for an application of HTTP/1.1, which refuses the handshake.
        const isRefused = name === "Envoy" && protocol === "h2";
        assert.deepEqual(seen, isRefused ? [1006, ""] : ["héllo", largeBytes, 4000, "done"]);
      });
    }
  }
});

/** In the page: what it hears, and how the WebSocket ends. */
function exchange({ url, largeBytes: bytes }: { readonly url: string; readonly largeBytes: number }): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const seen: unknown[] = [];
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  socket.addEventListener("open", () => {
    socket.send("héllo");
    socket.send(new Uint8Array(bytes));
  });
  socket.addEventListener("message", ({ data }) => {
    seen.push(data instanceof ArrayBuffer ? data.byteLength : data);
    if (seen.length === 2) socket.close(4000, "done");
  });
  socket.addEventListener("close", ({ code, reason }) => resolve([...seen, code, reason]));
  return promise;
}
