// A stock Envoy driven by the ADS server: it takes clusters, endpoints, listeners and routes, proxies a request, and
// its refusals are understood.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer as createHttpServer, request as httpRequest } from "node:http";
import { type AddressInfo, type Server, createServer } from "node:net";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { envoyPath } from "../../../tests/tools/envoy-path.ts";
import { freePort, startProcess, waitFor } from "../../../tests/tools/processes.ts";
import { temporaryFolder } from "../../../tests/tools/temporary-folder.ts";
import type { AdsConnection, AdsServerLimits, Rejection } from "./ads-server-api.ts";
import { serveAds } from "./ads-server.ts";
import { type EncodedResource, encodeResource } from "./encoded-resource.ts";
import { messageFromJson } from "./json/from-json.ts";
import { resourceSchemas } from "./resource-schemas.ts";
import type { ResourceTypeName } from "./resource-types.ts";

const typeUrl = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;

function encode(type: ResourceTypeName, json: object): EncodedResource {
  const schema = resourceSchemas[type];
  const result = messageFromJson(schema, json);
  if (!result.ok) assert.fail(JSON.stringify(result.problems));
  return encodeResource(schema, result.message);
}

const socketAddress = (port: number): object => ({ socket_address: { address: "127.0.0.1", port_value: port } });

const edsCluster = (name: string, connectTimeout = "1s"): EncodedResource =>
  encode("CDS", {
    name,
    type: "EDS",
    connect_timeout: connectTimeout,
    eds_cluster_config: { eds_config: { ads: {}, resource_api_version: "V3" } },
  });

const endpoints = (name: string, port: number): EncodedResource =>
  encode("EDS", {
    cluster_name: name,
    endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress(port) } }] }],
  });

const listener = (name: string, port: number, routeName: string): EncodedResource =>
  encode("LDS", {
    name,
    address: socketAddress(port),
    filter_chains: [
      {
        filters: [
          {
            name: "http",
            typed_config: {
              "@type": typeUrl("filters.network.http_connection_manager.v3.HttpConnectionManager"),
              stat_prefix: name,
              rds: { route_config_name: routeName, config_source: { ads: {}, resource_api_version: "V3" } },
              http_filters: [{ name: "router", typed_config: { "@type": typeUrl("filters.http.router.v3.Router") } }],
            },
          },
        ],
      },
    ],
  });

const routes = (name: string, cluster: string, prefix = "/"): EncodedResource =>
  encode("RDS", {
    name,
    virtual_hosts: [{ name: "all", domains: ["*"], routes: [{ match: { prefix }, route: { cluster } }] }],
  });

const byName = (...resources: EncodedResource[]): ReadonlyMap<string, EncodedResource> =>
  new Map(resources.map((resource) => [resource.name, resource]));

function bootstrap(xdsPath: string): object {
  const options = {
    "@type": typeUrl("upstreams.http.v3.HttpProtocolOptions"),
    explicit_http_config: { http2_protocol_options: {} },
  };
  const endpoint = { endpoint: { address: { pipe: { path: xdsPath } } } };
  return {
    node: { id: "sidecar~127.0.0.1~a.b~b.svc.cluster.local", cluster: "a.b" },
    dynamic_resources: {
      ads_config: {
        api_type: "GRPC",
        transport_api_version: "V3",
        grpc_services: [{ envoy_grpc: { cluster_name: "xds-grpc" } }],
      },
      cds_config: { ads: {}, resource_api_version: "V3" },
      lds_config: { ads: {}, resource_api_version: "V3" },
    },
    static_resources: {
      clusters: [
        {
          name: "xds-grpc",
          type: "STATIC",
          typed_extension_protocol_options: { "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options },
          load_assignment: { cluster_name: "xds-grpc", endpoints: [{ lb_endpoints: [endpoint] }] },
        },
      ],
    },
  };
}

async function listening(context: TestContext, server: Server): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  context.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function get(port: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const request = httpRequest({ host: "127.0.0.1", port, path: "/", agent: false }, (response) => {
    let body = "";
    response.setEncoding("utf8").on("data", (text: string) => (body += text));
    response.on("end", () => resolve(`${response.statusCode} ${body}`));
  });
  request.on("error", reject);
  request.end();
  return promise;
}

class OneProxy {
  connection: AdsConnection | undefined;
  readonly rejections: Rejection[] = [];
  readonly declared = new Map<ResourceTypeName, ReadonlyMap<string, EncodedResource>>();

  declare(changes: Partial<Record<ResourceTypeName, readonly EncodedResource[]>>): void {
    for (const [type, resources] of Object.entries(changes) as [ResourceTypeName, EncodedResource[]][]) {
      this.declared.set(type, byName(...resources));
      this.connection?.set(type, byName(...resources));
    }
  }

  readonly handlers = {
    onConnect: (connection: AdsConnection): void => {
      this.connection = connection;
      for (const [type, resources] of this.declared) connection.set(type, resources);
    },
    onSubscribe: (): void => undefined,
    onNack: (_connection: AdsConnection, rejection: Rejection): void => void this.rejections.push(rejection),
    onDisconnect: (): void => undefined,
  };

  states(): string {
    const statuses = [...(this.connection?.status().values() ?? [])];
    return statuses.map(({ type, state }) => `${type} ${state}`).join(", ");
  }
}

async function startEnvoy(context: TestContext, proxy: OneProxy, limits: Partial<AdsServerLimits> = {}) {
  const folder = temporaryFolder("tulle-envoy-");
  const xdsPath = path.join(folder, "xds.sock");
  const server = await serveAds({ address: { path: xdsPath }, handlers: proxy.handlers, limits });
  context.after(() => server.close());
  const file = path.join(folder, "bootstrap.json");
  await writeFile(file, JSON.stringify(bootstrap(xdsPath)));
  const args = ["-c", file, "--concurrency", "1", "--disable-hot-restart", "-l", "warning"];
  const envoy = await startProcess(await envoyPath(), args, { name: "envoy" });
  context.after(() => envoy.stop());
  return envoy;
}

test("a stock Envoy proxies what the server sends, follows changes, and refuses one listener of several", async (context) => {
  const first = createHttpServer((_request, response) => response.end("first"));
  const second = createHttpServer((_request, response) => response.end("second"));
  const firstPort = await listening(context, first);
  const secondPort = await listening(context, second);
  const occupiedPort = await listening(context, createServer());
  const port = await freePort();

  const proxy = new OneProxy();
  proxy.declare({
    CDS: [edsCluster("one")],
    EDS: [endpoints("one", firstPort)],
    LDS: [listener("l", port, "r")],
    RDS: [routes("r", "one")],
  });
  const envoy = await startEnvoy(context, proxy);
  const details = (): string => `${proxy.states()}\n${envoy.output()}`;
  const until = (what: string, condition: () => boolean | Promise<boolean>): Promise<boolean> =>
    waitFor(condition, { what, details });
  const synced = "CDS SYNCED, EDS SYNCED, SDS NOT SENT, LDS SYNCED, ECDS NOT SENT, RDS SYNCED, NDS NOT SENT";
  await until("everything to be acknowledged", () => proxy.states() === synced);
  await until("the first back end", async () => (await get(port)) === "200 first");

  // A changed cluster is given its endpoints again: Envoy would wait 15 s for them otherwise.
  proxy.declare({ CDS: [edsCluster("one", "2s")], EDS: [endpoints("one", secondPort)] });
  await until("the second back end", async () => (await get(port)) === "200 second");
  await until("the change to be acknowledged", () => proxy.states() === synced);

  // Clusters exchanged in one push: no request meets a route without a cluster.
  const answers = new Set<string>();
  proxy.declare({
    CDS: [edsCluster("two")],
    EDS: [endpoints("two", firstPort)],
    RDS: [routes("r", "two")],
  });
  await until("the other cluster", async () => {
    const answer = await get(port);
    answers.add(answer);
    return answer === "200 first" && proxy.states() === synced;
  });
  assert.deepEqual(
    [...answers].filter((answer) => !answer.startsWith("200 ")),
    [],
  );
  assert.equal(proxy.rejections.length, 0);

  // One listener on an occupied port, one good change beside it.
  const newPort = await freePort();
  proxy.declare({
    LDS: [listener("l", port, "r"), listener("occupied", occupiedPort, "r"), listener("m", newPort, "r")],
  });
  await until("the refusal", () => proxy.rejections.length > 0);
  assert.deepEqual(
    proxy.rejections[0]!.offenders.map(({ name }) => name),
    ["occupied"],
  );
  assert.match(proxy.rejections[0]!.message, /Address already in use/);
  await until("the good listener", async () => (await get(newPort)) === "200 first");
  await until("the rest to be acknowledged", () => /LDS ERROR/.test(proxy.states()) && isRestAcknowledged(proxy));
  assert.equal(await get(port), "200 first");

  // A route that Envoy refuses: the previous one stays in effect.
  proxy.declare({ RDS: [routes("r", "no-such-cluster", "no slash is fine, two hosts are not")] });
  const twice = { name: "twice", domains: ["*"] };
  proxy.declare({ RDS: [encode("RDS", { name: "r", virtual_hosts: [twice, { ...twice, name: "again" }] })] });
  await until("the route's refusal", () => proxy.rejections.some(({ type }) => type === "RDS"));
  await until("RDS ERROR", () => /RDS ERROR/.test(proxy.states()));
  assert.equal(await get(port), "200 first");

  // A sound declaration ends both errors.
  proxy.declare({ RDS: [routes("r", "two")], LDS: [listener("l", port, "r")] });
  await until("everything to be acknowledged again", () => proxy.states() === synced);
  assert.equal(await get(port), "200 first");
});

function isRestAcknowledged(proxy: OneProxy): boolean {
  const status = proxy.connection!.status().get("LDS")!;
  return status.sentNonce === status.ackedNonce;
}

for (const [how, maxOutstandingResponses] of [
  ["sent one by one", 32],
  ["sent in batches", 2],
] as const) {
  test(`endpoints ${how}: the one that Envoy refuses is told apart, though its refusal names none`, async (context) => {
    const proxy = new OneProxy();
    const names = ["a", "b", "c", "d", "e"];
    const bad = encode("EDS", { cluster_name: "c", endpoints: [{ priority: 200 }] });
    proxy.declare({
      CDS: names.map((name) => edsCluster(name)),
      EDS: names.map((name) => (name === "c" ? bad : endpoints(name, 9))),
      LDS: [],
    });
    const envoy = await startEnvoy(context, proxy, { maxOutstandingResponses });
    const details = (): string => `${proxy.states()}\n${envoy.output()}`;
    await waitFor(() => proxy.states().startsWith("CDS SYNCED, EDS ERROR"), { what: "the refusal", details });
    await waitFor(() => proxy.connection!.status().get("EDS")!.rejected.length > 0, { what: "the offender", details });
    assert.deepEqual(
      proxy
        .connection!.status()
        .get("EDS")!
        .rejected.map(({ name }) => name),
      ["c"],
    );
  });
}

test("a stopped Envoy is STALE and SYNCED again when it goes on", async (context) => {
  const proxy = new OneProxy();
  proxy.declare({ CDS: [edsCluster("one")], EDS: [endpoints("one", 9)], LDS: [] });
  const envoy = await startEnvoy(context, proxy);
  const details = (): string => `${proxy.states()}\n${envoy.output()}`;
  await waitFor(() => /EDS SYNCED.*LDS SYNCED/.test(proxy.states()), { what: "the first push", details });
  envoy.kill("SIGSTOP");
  proxy.declare({ EDS: [endpoints("one", 10)] });
  await waitFor(() => /EDS STALE/.test(proxy.states()), { what: "STALE", details });
  proxy.declare({ EDS: [endpoints("one", 11)] });
  envoy.kill("SIGCONT");
  await waitFor(() => /EDS SYNCED/.test(proxy.states()), { what: "SYNCED", details });
});
