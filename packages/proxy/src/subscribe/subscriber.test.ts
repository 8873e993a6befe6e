// A whole proxy on a real stream: resources come, change, are refused and go, and requests see the outcome.
import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { type TestContext, test } from "node:test";
import { type LogEntry, Logging } from "@tulle/telemetry";
import {
  type AdsConnection,
  type EncodedResource,
  type Rejection,
  type ResourceTypeName,
  encodeResource,
  serveAds,
} from "@tulle/xds";
import { BootstrapSchema } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import { resourceSchemas } from "@tulle/xds/resource-schemas";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { adsConfig } from "../testing/ads-bootstrap.ts";
import { fromConfiguration } from "../testing/from-configuration.ts";
import { type RunningProxy, runProxy } from "../run-proxy.ts";

const ads = { ads: {}, resource_api_version: "V3" };
const type = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;
const socketAddress = (port_value: number): object => ({ socket_address: { address: "127.0.0.1", port_value } });

function resource(kind: ResourceTypeName, json: object): EncodedResource {
  return encodeResource(resourceSchemas[kind], fromConfiguration(resourceSchemas[kind], json));
}

const edsCluster = (name: string, extra: object = {}): EncodedResource =>
  resource("CDS", { name, type: "EDS", eds_cluster_config: { eds_config: ads }, connect_timeout: "1s", ...extra });

const endpoints = (cluster_name: string, ...ports: number[]): EncodedResource =>
  resource("EDS", {
    cluster_name,
    endpoints: [{ lb_endpoints: ports.map((port) => ({ endpoint: { address: socketAddress(port) } })) }],
  });

const listener = (name: string, port: number, routeName: string): EncodedResource =>
  resource("LDS", listenerJson(name, port, { rds: { route_config_name: routeName, config_source: ads } }));

const listenerJson = (name: string, port: number, routeSource: object): object => ({
  name,
  address: socketAddress(port),
  filter_chains: [
    {
      filters: [
        {
          name: "envoy.filters.network.http_connection_manager",
          typed_config: {
            "@type": type("filters.network.http_connection_manager.v3.HttpConnectionManager"),
            stat_prefix: name,
            http_filters: [
              { name: "envoy.filters.http.router", typed_config: { "@type": type("filters.http.router.v3.Router") } },
            ],
            ...routeSource,
          },
        },
      ],
    },
  ],
});

const routes = (name: string, cluster: string, match: object = { prefix: "/" }): EncodedResource =>
  resource("RDS", {
    name,
    virtual_hosts: [{ name: "all", domains: ["*"], routes: [{ match, route: { cluster } }] }],
  });

interface Mesh {
  readonly proxy: RunningProxy;
  readonly rejections: Rejection[];
  readonly log: LogEntry[];
  set(type: ResourceTypeName, ...resources: EncodedResource[]): void;
  port(listenerName: string): number;
}

/** A control plane that serves what the test sets, and a proxy that subscribes to it. */
async function startMesh(
  t: TestContext,
  first: Partial<Record<ResourceTypeName, EncodedResource[]>>,
  staticListeners: readonly object[] = [],
): Promise<Mesh> {
  const declared = new Map<ResourceTypeName, Map<string, EncodedResource>>();
  const rejections: Rejection[] = [];
  let connection: AdsConnection | undefined;
  const declare = (kind: ResourceTypeName, resources: readonly EncodedResource[]): void => {
    declared.set(kind, new Map(resources.map((one) => [one.name, one])));
    connection?.set(kind, declared.get(kind)!);
  };
  for (const [kind, resources] of Object.entries(first)) declare(kind as ResourceTypeName, resources);
  const server = await serveAds({
    address: { host: "127.0.0.1", port: 0 },
    handlers: {
      onConnect: (opened) => {
        connection = opened;
        for (const [kind, resources] of declared) opened.set(kind, resources);
      },
      onSubscribe: () => undefined,
      onNack: (_connection, rejection) => rejections.push(rejection),
      onDisconnect: () => undefined,
    },
  });
  assert.ok("port" in server.address);
  const bootstrap = fromConfiguration(BootstrapSchema, {
    node: { id: "sidecar~127.0.0.1~a.b~b.svc.cluster.local", cluster: "a.b" },
    admin: { address: socketAddress(0) },
    dynamic_resources: {
      ads_config: adsConfig,
      cds_config: { ...ads, initial_fetch_timeout: "0s" },
      lds_config: { ...ads, initial_fetch_timeout: "0s" },
    },
    static_resources: {
      listeners: staticListeners,
      clusters: [
        {
          name: "xds",
          type: "STATIC",
          typed_extension_protocol_options: {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
              "@type": type("upstreams.http.v3.HttpProtocolOptions"),
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
          load_assignment: {
            cluster_name: "xds",
            endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress(server.address.port) } }] }],
          },
        },
      ],
    },
  });
  const log: LogEntry[] = [];
  const logging = new Logging({ sink: (entry) => log.push(entry) });
  const proxy = await runProxy({ bootstrap, env: {}, drainTimeMs: 100, logging });
  t.after(async () => {
    await proxy.close();
    await server.close();
  });
  return {
    proxy,
    rejections,
    log,
    set: (kind, ...resources) => declare(kind, resources),
    port: (name) => proxy.listenerAddresses().get(name)?.[0]?.port ?? 0,
  };
}

/** A server that answers with its name; the port that it took. */
async function backEnd(t: TestContext, name: string): Promise<number> {
  const server = http.createServer((_request, response) => response.end(name));
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as net.AddressInfo).port;
}

/** Status and body, on a connection of its own. */
function get(port: number, path = "/"): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: "127.0.0.1", port, path, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      response.on("end", () => resolve(`${response.statusCode} ${body}`));
    });
    request.on("error", reject);
  });
}

async function admin({ proxy }: Mesh, path: string): Promise<string> {
  return get(proxy.adminAddress!.port, path);
}

test("the start waits for clusters, endpoints, listeners and routes, in this order", async (t) => {
  const back = await backEnd(t, "one");
  const mesh = await startMesh(t, { CDS: [edsCluster("c")] });
  assert.equal(await admin(mesh, "/ready"), "503 PRE_INITIALIZING\n");
  const warming = "/stats?filter=_manager.*warming";
  const counted = (listeners: number, clusters: number): string =>
    `200 cluster_manager.warming_clusters: ${clusters}\nlistener_manager.total_listeners_warming: ${listeners}\n`;
  await waitFor(async () => (await admin(mesh, warming)) === counted(0, 1), { what: "the cluster to warm" });
  mesh.set("EDS", endpoints("c", back));
  await waitFor(async () => (await admin(mesh, "/ready")) === "503 INITIALIZING\n", { what: "clusters to be warm" });
  mesh.set("LDS", listener("l", 0, "r"));
  await waitFor(
    () => mesh.log.some((entry) => entry.message === "listeners received" && entry.fields?.["warming"] === 1),
    {
      what: "the listener to warm",
    },
  );
  assert.equal(mesh.port("l"), 0, "a warming listener does not accept");
  assert.equal(await admin(mesh, warming), counted(1, 0));
  mesh.set("RDS", routes("r", "c"));
  await mesh.proxy.ready;
  assert.equal(await admin(mesh, "/ready"), "200 LIVE\n");
  assert.equal(await admin(mesh, warming), counted(0, 0));
  assert.equal(await get(mesh.port("l")), "200 one");
});

test("endpoints, routes, clusters and listeners change while requests are served", async (t) => {
  const [one, two] = [await backEnd(t, "one"), await backEnd(t, "two")];
  const mesh = await startMesh(t, {
    CDS: [edsCluster("c")],
    EDS: [endpoints("c", one)],
    LDS: [listener("l", 0, "r")],
    RDS: [routes("r", "c")],
  });
  await mesh.proxy.ready;
  const port = mesh.port("l");
  assert.equal(await get(port), "200 one");

  mesh.set("EDS", endpoints("c", two));
  await waitFor(async () => (await get(port)) === "200 two", { what: "the new endpoint" });

  mesh.set("RDS", routes("r", "absent"));
  await waitFor(async () => (await get(port)).startsWith("503"), { what: "the route to a missing cluster" });

  mesh.set("CDS", edsCluster("c"), edsCluster("absent"));
  mesh.set("EDS", endpoints("c", two), endpoints("absent", one));
  await waitFor(async () => (await get(port)) === "200 one", { what: "the cluster to come" });

  mesh.set("LDS", listener("l", 0, "r"), listener("m", 0, "other"));
  mesh.set("RDS", routes("r", "absent"), routes("other", "c"));
  await waitFor(() => mesh.port("m") !== 0, { what: "the second listener" });
  assert.equal(await get(mesh.port("m")), "200 two");

  mesh.set("LDS", listener("m", 0, "other"));
  await waitFor(async () => (await get(port).catch((error: NodeJS.ErrnoException) => error.code)) === "ECONNREFUSED", {
    what: "the first listener to go",
  });
  assert.deepEqual(mesh.rejections, []);
});

test("a refused resource keeps its previous version, and its neighbours apply", async (t) => {
  const back = await backEnd(t, "one");
  const mesh = await startMesh(t, {
    CDS: [edsCluster("c")],
    EDS: [endpoints("c", back)],
    LDS: [listener("l", 0, "r")],
    RDS: [routes("r", "c")],
  });
  await mesh.proxy.ready;
  const port = mesh.port("l");

  mesh.set("CDS", edsCluster("c", { lb_policy: "MAGLEV" }), edsCluster("d"));
  mesh.set("EDS", endpoints("c", back), endpoints("d", back));
  await waitFor(() => mesh.rejections.length === 1, { what: "the cluster to be refused" });
  assert.equal(mesh.rejections[0]?.message, "Error adding/updating cluster(s) c: lb_policy: MAGLEV is not supported");
  await waitFor(async () => (await admin(mesh, "/clusters")).includes("d::observability_name"), {
    what: "its neighbour",
  });
  assert.equal(await get(port), "200 one");

  mesh.set("RDS", routes("r", "c", { safe_regex: { regex: "(?=x)" } }));
  await waitFor(() => mesh.rejections.length === 2, { what: "the routes to be refused" });
  assert.match(mesh.rejections[1]!.message, /^Error adding\/updating route configuration\(s\) r: virtual_hosts\[0\]/);
  assert.equal(await get(port), "200 one");

  mesh.set("RDS", routes("r", "d", { prefix: "/d" }));
  await waitFor(async () => (await get(port)).startsWith("404"), { what: "the mended routes" });
  assert.equal(await get(port, "/d"), "200 one");
});

test("a listener on an occupied port is refused by name, warm or not", async (t) => {
  const taken = await backEnd(t, "taken");
  const back = await backEnd(t, "one");
  const mesh = await startMesh(t, {
    CDS: [edsCluster("c")],
    EDS: [endpoints("c", back)],
    LDS: [listener("l", 0, "r")],
    RDS: [routes("r", "c")],
  });
  await mesh.proxy.ready;
  for (const [name, routeName] of [
    ["warm", "r"],
    ["cold", "later"],
  ] as const) {
    mesh.set("LDS", listener("l", 0, "r"), listener(name, taken, routeName));
    await waitFor(() => mesh.rejections.some((rejection) => rejection.message.includes(`${name}:`)), {
      what: `the ${name} listener to be refused`,
    });
    assert.match(
      mesh.rejections.at(-1)!.message,
      new RegExp(
        `^Error adding/updating listener\\(s\\) ${name}: .*cannot bind '127\\.0\\.0\\.1:${taken}': Address already in use`,
      ),
    );
  }
  assert.equal(await get(mesh.port("l")), "200 one");
});

test("a static listener may lead to a cluster that comes by CDS later", async (t) => {
  const back = await backEnd(t, "one");
  const route_config = {
    name: "inline",
    validate_clusters: false,
    virtual_hosts: [{ name: "all", domains: ["*"], routes: [{ match: { prefix: "/" }, route: { cluster: "c" } }] }],
  };
  const mesh = await startMesh(t, { CDS: [], LDS: [] }, [listenerJson("fixed", 0, { route_config })]);
  await mesh.proxy.ready;
  const port = mesh.port("fixed");
  assert.match(await get(port), /^503/);
  mesh.set("CDS", edsCluster("c"));
  mesh.set("EDS", endpoints("c", back));
  await waitFor(async () => (await get(port)) === "200 one", { what: "the cluster" });
  mesh.set("CDS");
  await waitFor(async () => (await get(port)).startsWith("503"), { what: "the cluster to go" });
  mesh.set("CDS", edsCluster("c"));
  await waitFor(async () => (await get(port)) === "200 one", { what: "the cluster to come again" });
});

test("/quitquitquit ends the proxy", async (t) => {
  const mesh = await startMesh(t, { CDS: [], LDS: [] });
  await mesh.proxy.ready;
  const { port } = mesh.proxy.adminAddress!;
  const request = http.request({ host: "127.0.0.1", port, path: "/quitquitquit", method: "POST", agent: false });
  request.on("response", (response) => response.resume()).end();
  assert.equal(await mesh.proxy.ended, 0);
});

test("what a response removes is forgotten in one look at all counters", async (t) => {
  const names = Array.from({ length: 30 }, (_each, index) => `c${index}`);
  const clusters = ["kept", ...names].map((name) => edsCluster(name));
  const mesh = await startMesh(t, { CDS: clusters, EDS: ["kept", ...names].map((name) => endpoints(name, 1)) });
  const has = (name: string): boolean =>
    [...mesh.proxy.metrics.allSeries()].some(({ labels }) => labels["envoy_cluster_name"] === name);
  await waitFor(() => ["kept", ...names].every(has), { what: "counters of all clusters" });
  const looks = t.mock.method(mesh.proxy.metrics, "removeSeries");
  mesh.set("CDS", clusters[0]!);
  await waitFor(() => !names.some(has), { what: "the end of the counters" });
  assert.equal(looks.mock.callCount(), 1);
  assert.ok(has("kept"));
});
