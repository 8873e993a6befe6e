// What a workload has been sent, as either proxy counts it: requests and connections to it, and none of its own.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { Logging } from "@tulle/telemetry";
import { envoyPath } from "../../../../tests/tools/envoy-path.ts";
import { freeAddressBlock, waitFor } from "../../../../tests/tools/processes.ts";
import { adminPort, bootstrapMessage } from "../bootstrap/bootstrap.ts";
import type { AgentSettings } from "../settings.ts";
import type { RunningDataPlane, StartDataPlane } from "./data-plane.ts";
import { startEnvoy } from "./envoy.ts";
import { startTulle } from "./tulle.ts";

const ports = { requests: 8080, connections: 8081, own: 8082, others: 8083 };

function bootstrapOf(address: string, backEndPort: number): object {
  const at = (host: string, port: number): object => ({ socket_address: { address: host, port_value: port } });
  const listener = (port: number, filter: object): object => ({
    name: String(port),
    address: at(address, port),
    filter_chains: [{ filters: [{ name: "it", typed_config: filter }] }],
  });
  const network = (name: string): string => `type.googleapis.com/envoy.extensions.filters.network.${name}`;
  const http = (prefix: string): object => ({
    "@type": network("http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: prefix,
    route_config: {
      virtual_hosts: [{ name: "v", domains: ["*"], routes: [{ match: { prefix: "/" }, route: { cluster: "c" } }] }],
    },
    http_filters: [
      {
        name: "router",
        typed_config: { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
      },
    ],
  });
  const tcp = (prefix: string): object => ({
    "@type": network("tcp_proxy.v3.TcpProxy"),
    stat_prefix: prefix,
    cluster: "c",
  });
  return {
    node: { id: "n", cluster: "n" },
    admin: { address: at(address, adminPort) },
    static_resources: {
      listeners: [
        listener(ports.requests, http(`inbound_${ports.requests}`)),
        listener(ports.connections, tcp(`inbound|${ports.connections}||`)),
        listener(ports.own, http(`outbound_${ports.own}`)),
        listener(ports.others, http("InboundPassthroughCluster")),
      ],
      clusters: [
        {
          name: "c",
          connect_timeout: "5s",
          load_assignment: {
            cluster_name: "c",
            endpoints: [{ lb_endpoints: [{ endpoint: { address: at("127.0.0.1", backEndPort) } }] }],
          },
        },
      ],
    },
  };
}

async function start(context: TestContext, startDataPlane: StartDataPlane, address: string): Promise<RunningDataPlane> {
  const backEnd = createServer((_request, response) => response.end("here"));
  await new Promise<void>((resolve) => backEnd.listen(0, "127.0.0.1", resolve));
  context.after(() => backEnd.close());
  const folder = mkdtempSync(path.join(tmpdir(), "tulle-taken-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const document = bootstrapOf(address, (backEnd.address() as AddressInfo).port);
  const bootstrapPath = path.join(folder, "bootstrap.json");
  writeFileSync(bootstrapPath, JSON.stringify(document));
  const settings = {
    podAddress: address,
    metadata: {},
    concurrency: 1,
    logLevel: "warning",
    listenerDrainMs: 1000,
    envoyCommand: await envoyPath(),
  } as unknown as AgentSettings;
  const proxy = await startDataPlane({
    settings,
    bootstrap: bootstrapMessage(document),
    bootstrapPath,
    env: process.env,
    logging: new Logging({ sink: () => undefined }),
  });
  context.after(() => proxy.stop({ leastMs: 0, mostMs: 0 }));
  await waitFor(() => proxy.isReady(), { what: "the proxy to be ready" });
  return proxy;
}

async function connectOnce(host: string, port: number): Promise<void> {
  const socket = connect(port, host);
  socket.end("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
  for await (const _chunk of socket);
}

for (const [name, startDataPlane] of [
  ["tulle", startTulle],
  ["envoy", startEnvoy],
] as const) {
  test(`what a workload behind ${name} has been sent`, async (context) => {
    const address = `${await freeAddressBlock()}.1`;
    const proxy = await start(context, startDataPlane, address);
    assert.equal(await proxy.taken(), 0);
    for (const port of [ports.requests, ports.requests, ports.own, ports.others]) {
      assert.equal((await fetch(`http://${address}:${port}/`)).status, 200);
    }
    await connectOnce(address, ports.connections);
    assert.equal(await proxy.taken(), 4);
  });
}
