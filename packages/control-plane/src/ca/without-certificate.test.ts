// Proxies without an agent on the port without TLS of a mesh with certificates: a stock Envoy and Tulle's own. They
// start, speak plain text to who takes it, and tell their client where mutual TLS is asked for, to whom they never open
// a connection.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import http from "node:http";
import net from "node:net";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { loadText } from "@tulle/config";
import { envoyPath } from "../../../../tests/tools/envoy-path.ts";
import { freeAddressBlock, type StartedProcess, startProcess, waitFor } from "../../../../tests/tools/processes.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import type { ProxySync } from "@tulle/config/api";
import { type ProvenWorld, provenWorld } from "../testing/proven-world.ts";

const adminPort = 15_000;
const cli = path.resolve(import.meta.dirname, "../../../cli/src/main.ts");

type ProxyKind = "envoy" | "tulle";

interface Node {
  readonly type: "sidecar" | "router";
  readonly name: string;
  readonly address: string;
  readonly appAddress: string;
}

/** No cluster `sds-grpc`, no certificate. */
function bootstrap({ type, name, address, appAddress }: Node, xdsPort: number): object {
  const control = { socket_address: { address: "127.0.0.1", port_value: xdsPort } };
  const source = { ads: {}, resource_api_version: "V3", initial_fetch_timeout: "0s" };
  return {
    node: {
      id: `${type}~${address}~${name}.shop~shop.svc.cluster.local`,
      cluster: `${name}.shop`,
      metadata: { INTERCEPTION_MODE: "NONE", APP_ADDRESS: appAddress, LABELS: { app: name.replace(/-1$/, "") } },
    },
    admin: { address: { socket_address: { address, port_value: adminPort } } },
    dynamic_resources: {
      ads_config: {
        api_type: "GRPC",
        transport_api_version: "V3",
        grpc_services: [{ envoy_grpc: { cluster_name: "xds-grpc" } }],
      },
      cds_config: source,
      lds_config: source,
    },
    static_resources: {
      clusters: [
        {
          name: "xds-grpc",
          type: "STATIC",
          typed_extension_protocol_options: {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
              "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
          load_assignment: {
            cluster_name: "xds-grpc",
            endpoints: [{ lb_endpoints: [{ endpoint: { address: control } }] }],
          },
        },
      ],
    },
  };
}

async function startProxy(context: TestContext, kind: ProxyKind, node: Node, world: ProvenWorld): Promise<void> {
  const config = path.join(temporaryFolder("tulle-ca-"), "bootstrap.json");
  await writeFile(config, JSON.stringify(bootstrap(node, world.running.xdsAddress!.port)));
  const args = ["-c", config, "-l", "warning"];
  const proxy: StartedProcess =
    kind === "envoy"
      ? await startProcess(await envoyPath(), [...args, "--concurrency", "1", "--disable-hot-restart"], { name: kind })
      : await startProcess(process.execPath, [cli, "proxy", ...args], { name: kind });
  context.after(() => proxy.stop());
  const isLive = async (): Promise<boolean> =>
    (await (await fetch(`http://${node.address}:${adminPort}/ready`)).text()) === "LIVE\n";
  const details = (): string => proxy.output();
  await waitFor(isLive, { what: `${kind} to be live as ${node.name}`, details });
}

/** A Service `name` with one pod that has a proxy of the mesh, at the address. */
function peer(name: string, address: string, portName: string, port: number): readonly object[] {
  const ports = [{ name: portName, port }];
  const tlsMode = { "security.istio.io/tlsMode": "istio" };
  const metadata = { name, namespace: "shop" };
  return [
    { apiVersion: "v1", kind: "Service", metadata, spec: { selector: { app: name }, ports } },
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...metadata, labels: { app: name, ...tlsMode } },
      spec: { serviceAccountName: name, containers: [{ name: "app" }] },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { ...metadata, labels: { "kubernetes.io/service-name": name } },
      addressType: "IPv4",
      ports,
      endpoints: [{ addresses: [address], targetRef: { kind: "Pod", ...metadata } }],
    },
  ];
}

function modeOf(app: string, mode: string, portLevelMtls?: Readonly<Record<number, { mode: string }>>): object {
  return {
    apiVersion: "security.tulle.io/v1",
    kind: "PeerAuthentication",
    metadata: { name: app, namespace: "shop" },
    spec: {
      selector: { matchLabels: { app } },
      mtls: { mode },
      ...(portLevelMtls === undefined ? {} : { portLevelMtls }),
    },
  };
}

async function apply({ running }: ProvenWorld, ...resources: readonly object[]): Promise<void> {
  const text = resources.map((each) => JSON.stringify(each)).join("\n---\n");
  const { resources: loaded, findings } = loadText(text, "mesh.yaml");
  assert.deepEqual(findings, []);
  for (const resource of loaded) await running.store.apply(resource);
}

interface Server {
  readonly connections: () => number;
}

/** Answers every request with `text`, and counts who connects. */
async function serve(context: TestContext, address: string, port: number, text: string): Promise<Server> {
  let connections = 0;
  const server = http.createServer((_request, response) => response.end(text));
  server.on("connection", () => (connections += 1));
  server.listen(port, address);
  await once(server, "listening");
  context.after(() => server.closeAllConnections());
  context.after(() => server.close());
  return { connections: () => connections };
}

interface Answer {
  readonly status: number | undefined;
  readonly body: string;
}

/** By a proxy that the client knows of, or by a Host at a gateway. */
async function call(address: string, port: number, target: string, host: string, method = "GET"): Promise<Answer> {
  const request = http.request({ host: address, port, method, path: target, headers: { host }, agent: false }).end();
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  request.once("error", reject).once("response", (response) => {
    let body = "";
    response.setEncoding("utf8").on("data", (chunk) => (body += chunk));
    response.once("end", () => resolve({ status: response.statusCode, body }));
  });
  // To a CONNECT the body is not read by this client.
  request.once("connect", ({ statusCode }, socket) => {
    socket.destroy();
    resolve({ status: statusCode, body: "" });
  });
  return promise;
}

async function isRefused(address: string, port: number): Promise<boolean> {
  const socket = net.connect(port, address);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once("connect", () => resolve(false));
  socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  const refused = await promise;
  socket.destroy();
  return refused;
}

function gatewayResources(): readonly object[] {
  const hosts = ["*"];
  const metadata = { name: "site", namespace: "shop" };
  const routes = ["open", "closed"].map((name) => ({
    match: [{ uri: { prefix: `/${name}` } }],
    route: [{ destination: { host: name } }],
  }));
  return [
    {
      apiVersion: "networking.tulle.io/v1",
      kind: "Gateway",
      metadata,
      spec: {
        selector: { app: "edge" },
        servers: [
          { port: { number: 8080, name: "http", protocol: "HTTP" }, hosts },
          {
            port: { number: 8443, name: "https", protocol: "HTTPS" },
            hosts,
            tls: { mode: "SIMPLE", credentialName: "site" },
          },
        ],
      },
    },
    {
      apiVersion: "networking.tulle.io/v1",
      kind: "VirtualService",
      metadata,
      spec: { hosts, gateways: ["site"], http: routes },
    },
  ];
}

const words = (server: string): RegExp =>
  new RegExp(`^${server}.* asks for mutual TLS, and this proxy has no certificate of the mesh\n$`);

for (const kind of ["envoy", "tulle"] as const) {
  test(`${kind} without an agent starts beside a mesh with certificates, and refuses what asks for them`, async (context) => {
    const world = await provenWorld(context, { xdsAddress: { host: "127.0.0.1", port: 0 } });
    const block = await freeAddressBlock();
    const [own, app, edge, openPeer, closedPeer] = [1, 101, 2, 3, 4].map((last) => `${block}.${last}`) as [
      string,
      string,
      string,
      string,
      string,
    ];
    const open = await serve(context, openPeer, 80, "from open");
    const closed = await serve(context, closedPeer, 80, "in the clear");
    const database = await serve(context, closedPeer, 5432, "in the clear");
    await serve(context, app, 3000, "from the application");
    const ports = [
      { name: "http", port: 3000 },
      { name: "http-strict", port: 3001 },
    ];
    const metadata = { name: "stock", namespace: "shop" };
    await apply(
      world,
      { apiVersion: "v1", kind: "Service", metadata, spec: { selector: { app: "stock" }, ports } },
      ...peer("open", openPeer, "http", 80),
      ...peer("closed", closedPeer, "http", 80),
      ...peer("database", closedPeer, "tcp-db", 5432),
      modeOf("closed", "STRICT"),
      modeOf("database", "STRICT"),
      modeOf("stock", "PERMISSIVE", { 3001: { mode: "STRICT" } }),
      ...gatewayResources(),
    );
    await startProxy(context, kind, { type: "sidecar", name: "stock-1", address: own, appAddress: app }, world);
    await startProxy(context, kind, { type: "router", name: "edge-1", address: edge, appAddress: edge }, world);
    const out = (name: string): Promise<Answer> => call(own, 15_007, `http://${name}.shop/`, `${name}.shop`);
    const through = (name: string): Promise<Answer> => call(edge, 8080, `/${name}`, "shop.example");

    for (const ask of [out, through]) {
      assert.deepEqual(await ask("open"), { status: 200, body: "from open" });
      const { status, body } = await ask("closed");
      assert.equal(status, 503);
      assert.match(body, words("closed.shop.svc.cluster.local:80"));
    }
    const tunnel = await call(own, 15_007, "database.shop:5432", "database.shop:5432", "CONNECT");
    assert.equal(tunnel.status, 503);
    assert.equal(closed.connections() + database.connections(), 0, "nobody was spoken to in the clear");

    assert.deepEqual(await call(own, 3000, "/", "stock.shop"), { status: 200, body: "from the application" });
    assert.ok(await isRefused(own, 3001), "its own port under STRICT takes nothing");
    assert.ok(await isRefused(edge, 8443), "nor does the port whose Secret it is not sent");

    const rows = JSON.parse((await world.ask("/debug/syncz")).body) as readonly ProxySync[];
    assert.deepEqual(
      rows.map(({ proxy, withoutCertificate }) => [proxy, withoutCertificate]),
      [
        ["edge-1.shop", true],
        ["stock-1.shop", true],
      ],
    );
    const settled = async (): Promise<boolean> => {
      const listed = JSON.parse((await world.ask("/debug/syncz")).body) as readonly ProxySync[];
      return listed.every(({ types }) => types.CDS.state === "SYNCED" && types.LDS.state === "SYNCED");
    };
    await waitFor(settled, { what: "nothing to be refused or unanswered" });

    // A server that asks for it from now on is left alone from now on, and one that asks no more is reached.
    await apply(world, modeOf("open", "STRICT"), modeOf("closed", "PERMISSIVE"));
    for (const ask of [out, through]) {
      // Its endpoints go before the route with the reason comes.
      const isToldWhy = async (): Promise<boolean> =>
        words("open.shop.svc.cluster.local:80").test((await ask("open")).body);
      await waitFor(isToldWhy, { what: "open to be refused, with the reason" });
      await waitFor(async () => (await ask("closed")).body === "in the clear", { what: "closed to be reached" });
    }
    // What a workload's proxy takes may change with its endpoint alone.
    const [service, pod, slice] = peer("late", closedPeer, "http", 80);
    await apply(world, service!, modeOf("late", "STRICT"), pod!, slice!);
    const isRefusedOut = async (): Promise<boolean> =>
      words("late.shop.svc.cluster.local:80").test((await out("late")).body);
    await waitFor(isRefusedOut, { what: "the reason" });
    const { metadata: podMetadata } = pod as { readonly metadata: object };
    await apply(world, { ...pod, metadata: { ...podMetadata, labels: { app: "late" } } });
    await waitFor(async () => (await out("late")).body === "in the clear", { what: "the pod without a proxy" });

    const before = open.connections();
    await out("open");
    await through("open");
    assert.equal(open.connections(), before);
  });
}
