// Hosts called from the client's address, by this proxy and by a stock Envoy: requests, of which each client has
// connections of its own, connections that are passed on, and TLS. Takes root.
import assert from "node:assert/strict";
import http from "node:http";
import https from "node:https";
import net from "node:net";
import { after, before, test } from "node:test";
import { testCertificate } from "../../../../../../tests/tools/certificates.ts";
import { ToolUnavailable } from "../../../../../../tests/tools/tool-unavailable.ts";
import { connectionManager, extension, loopback, staticCluster } from "../../../testing/envoy-json.ts";
import { type Side, type Sides, startSides } from "../../../testing/parity-pair.ts";

const names = ["requests", "connections", "TLS"] as const;
type Name = (typeof names)[number];

const tell: http.RequestListener = ({ socket }, response) => response.end(`from ${socket.remoteAddress}`);
const tlsContext = { "@type": extension("transport_sockets.tls.v3.UpstreamTlsContext") };

function bootstrapFor(port: number, tlsPort: number): string {
  const filters: Readonly<Record<Name, object>> = {
    requests: connectionManager([{ match: { prefix: "/" }, route: { cluster: "plain" } }]),
    connections: {
      "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"),
      stat_prefix: "tcp",
      cluster: "plain",
    },
    TLS: connectionManager([{ match: { prefix: "/" }, route: { cluster: "tls" } }]),
  };
  const listeners = names.map((name) => ({
    name,
    address: loopback(0),
    listener_filters: [
      {
        name: "original_src",
        typed_config: { "@type": extension("filters.listener.original_src.v3.OriginalSrc"), mark: 77 },
      },
    ],
    filter_chains: [{ filters: [{ name: "last", typed_config: filters[name] }] }],
  }));
  const clusters = [
    staticCluster("plain", [port]),
    staticCluster("tls", [tlsPort], { transport_socket: { name: "tls", typed_config: tlsContext } }),
  ];
  return JSON.stringify({ admin: { address: loopback(0) }, static_resources: { listeners, clusters } });
}

function ask({ ports }: Side, name: Name, localAddress: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port: ports.get(name)!, localAddress, agent: false };
    http
      .get(options, async (response) => resolve(Buffer.concat(await response.toArray()).toString()))
      .once("error", reject);
  });
}

let sides: Sides;
const secure = new https.Server();

before(async () => {
  if (process.getuid?.() !== 0) throw new ToolUnavailable("root", "it takes CAP_NET_ADMIN; run this test as root");
  const { key, certificate: cert } = await testCertificate({ names: ["DNS:app"] });
  secure.setSecureContext({ key, cert });
  secure.on("request", tell);
  await new Promise<void>((resolve) => {
    secure.listen(0, "127.0.0.1", resolve);
  });
  const { port: tlsPort } = secure.address() as net.AddressInfo;
  sides = await startSides(http.createServer(tell), names.length, (port) => bootstrapFor(port, tlsPort));
});
after(async () => {
  await sides?.stop();
  secure.close();
});

for (const name of names) {
  for (const side of ["ours", "envoy"] as const) {
    test(`${name} by ${side === "ours" ? "this proxy" : "Envoy"}`, async () => {
      for (const client of ["127.0.0.77", "127.0.0.78", "127.0.0.77"]) {
        assert.equal(await ask(sides[side], name, client), `from ${client}`);
      }
    });
  }
}
