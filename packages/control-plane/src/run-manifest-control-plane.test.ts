// A whole control plane with a proxy that speaks ADS: which change sends which type, what a refusal does, and the HTTP
// API.
import assert from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { ApiClient, type ResourceWatch, type StoreChange } from "@tulle/config";
import { Logging } from "@tulle/telemetry";
import { type AdsResponse, connectAds, type ResourceTypeName, type Verdict } from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { waitFor } from "../../../tests/tools/processes.ts";
import { socketRequest } from "../../../tests/tools/socket-request.ts";
import { endpoints as apiEndpoints, type ProxySync } from "@tulle/config/api";
import { type RunningManifestControlPlane, runManifestControlPlane } from "./run-manifest-control-plane.ts";

const manifests = `
apiVersion: v1
kind: Service
metadata: { name: catalog, namespace: shop }
spec: { selector: { app: catalog }, ports: [{ name: http, port: 80, targetPort: 3000 }] }
---
apiVersion: v1
kind: Service
metadata: { name: gateway, namespace: tulle-system }
spec: { selector: { tulle: ingressgateway }, ports: [{ name: http, port: 80, targetPort: 8080 }] }
---
apiVersion: networking.tulle.io/v1
kind: DestinationRule
metadata: { name: catalog, namespace: shop }
spec: { host: catalog, subsets: [{ name: v1, labels: { version: v1 } }, { name: v2, labels: { version: v2 } }] }
`;

interface World extends AsyncDisposable {
  readonly running: RunningManifestControlPlane;
  readonly stateDirectory: string;
  readonly api: ApiClient;
}

async function makeWorld(): Promise<World> {
  const folder = await mkdtemp(path.join(tmpdir(), "control-plane-"));
  await writeFile(path.join(folder, "mesh.yaml"), manifests);
  const stateDirectory = path.join(folder, ".tulle");
  const running = await runManifestControlPlane({
    directory: folder,
    stateDirectory,
    xdsAddress: { host: "127.0.0.1", port: 0 },
    httpAddress: { host: "127.0.0.1", port: 0 },
    debounce: { quietMs: 5, maxMs: 100 },
    logging: new Logging({ level: "off" }),
  });
  return {
    running,
    stateDirectory,
    api: new ApiClient({ endpoint: { socketPath: running.socketPath } }),
    [Symbol.asyncDispose]: async () => {
      await running.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A proxy that subscribes as Envoy does, and writes down what it is sent. */
class FakeProxy implements Disposable {
  readonly responses: AdsResponse[] = [];
  readonly #client: ReturnType<typeof connectAds>;
  readonly #refuse: (response: AdsResponse) => Verdict;

  constructor(
    { running }: World,
    id: string,
    metadata: JsonObject,
    refuse: (response: AdsResponse) => Verdict = () => [],
  ) {
    this.#refuse = refuse;
    this.#client = connectAds({
      target: `http://127.0.0.1:${running.xdsAddress!.port}`,
      node: create(NodeSchema, { id, metadata: { INTERCEPTION_MODE: "NONE", ...metadata } }),
      handlers: { onResponse: (response) => this.#take(response) },
    });
    this.#client.subscribe("CDS", "*");
    this.#client.subscribe("LDS", "*");
  }

  /** The types sent since the last call, without repetition. */
  takeTypes(): ResourceTypeName[] {
    return [...new Set(this.responses.splice(0).map(({ type }) => type))].sort();
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }

  #take(response: AdsResponse): Verdict {
    this.responses.push(response);
    if (response.type === "CDS") {
      const names = [...response.resources.values()].filter((each) => each.edsClusterConfig).map(({ name }) => name);
      this.#client.subscribe("EDS", new Set(names));
    }
    if (response.type === "LDS") this.#client.subscribe("RDS", new Set(["http_proxy", "http.8080"]));
    return this.#refuse(response);
  }
}

const sidecarId = "sidecar~127.9.9.1~web-1.shop~shop.svc.cluster.local";
const gatewayId = "router~127.9.9.2~gateway-1.tulle-system~tulle-system.svc.cluster.local";
const gatewayLabels = { LABELS: { tulle: "ingressgateway" } };

function rows({ api }: World): Promise<readonly ProxySync[]> {
  return api.call(apiEndpoints.syncStatus, {});
}

async function settled(world: World, types: readonly ("CDS" | "LDS" | "EDS" | "RDS")[]): Promise<void> {
  const isSettled = async (): Promise<boolean> => {
    const all = await rows(world);
    return all.length > 0 && all.every((row) => types.every((type) => row.types[type].state === "SYNCED"));
  };
  await waitFor(isSettled, { what: `${types.join(", ")} to be acknowledged` });
}

function virtualService(subset: string): Parameters<ApiClient["apply"]>[0] {
  return {
    apiVersion: "networking.tulle.io/v1",
    kind: "VirtualService",
    metadata: { name: "catalog", namespace: "shop" },
    spec: { hosts: ["catalog"], http: [{ route: [{ destination: { host: "catalog", subset } }] }] },
  };
}

function endpoints(addresses: readonly string[]): Parameters<ApiClient["apply"]>[0] {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "catalog-1", namespace: "shop", labels: { "kubernetes.io/service-name": "catalog" } },
    addressType: "IPv4",
    ports: [{ name: "http", port: 3000, protocol: "TCP" }],
    endpoints: addresses.map((address) => ({ addresses: [address] })),
  };
}

function badGateway(port: number): Parameters<ApiClient["apply"]>[0] {
  return {
    apiVersion: "networking.tulle.io/v1",
    kind: "Gateway",
    metadata: { name: `gateway-${port}`, namespace: "shop" },
    spec: {
      selector: { tulle: "ingressgateway" },
      servers: [{ port: { number: port, name: "http", protocol: "HTTP" }, hosts: ["*"] }],
    },
  };
}

test("each change sends the types that it touches, and no others", async () => {
  await using world = await makeWorld();
  using proxy = new FakeProxy(world, sidecarId, {});
  await settled(world, ["CDS", "LDS", "EDS", "RDS"]);
  assert.deepEqual(proxy.takeTypes(), ["CDS", "EDS", "LDS", "RDS"]);
  const steps: readonly { change: () => Promise<unknown>; expected: readonly ResourceTypeName[] }[] = [
    { change: () => world.api.apply(virtualService("v1")), expected: ["RDS"] },
    { change: () => world.api.apply(endpoints(["127.9.9.3"])), expected: ["EDS"] },
    { change: () => world.api.apply(endpoints(["127.9.9.3", "127.9.9.4"])), expected: ["EDS"] },
    {
      change: () => world.api.delete({ kind: "VirtualService", namespace: "shop", name: "catalog" }),
      expected: ["RDS"],
    },
  ];
  for (const { change, expected } of steps) {
    await change();
    await waitFor(() => proxy.responses.length > 0, { what: `a push of ${expected.join()}` });
    await settled(world, ["CDS", "LDS", "EDS", "RDS"]);
    assert.deepEqual(proxy.takeTypes(), expected);
  }
});

test("a refused listener is an ERROR with its reason, at the proxy and at the resource, and its neighbours stay", async () => {
  await using world = await makeWorld();
  const message = "cannot bind '127.9.9.2:9000'";
  using proxy = new FakeProxy(world, gatewayId, gatewayLabels, ({ type, resources }) =>
    type === "LDS" && resources.has("0.0.0.0_9000") ? [{ name: "0.0.0.0_9000", message }] : [],
  );
  await world.api.apply(badGateway(80));
  await settled(world, ["CDS", "LDS"]);
  await world.api.apply(badGateway(9000));
  const row = await waitFor(async () => (await rows(world)).find(({ types }) => types.LDS.state === "ERROR"), {
    what: "the refusal",
  });
  assert.equal(row.proxy, "gateway-1.tulle-system");
  assert.deepEqual(
    row.types.LDS.errors.map(({ resource }) => resource),
    ["0.0.0.0_9000"],
  );
  assert.ok(row.types.LDS.errors[0]?.message.includes(message));
  const lastListeners = proxy.responses.findLast(({ type }) => type === "LDS");
  assert.ok(lastListeners?.resources.has("0.0.0.0_8080"));
  const status = async (name: string): Promise<unknown> =>
    ((await world.api.get("Gateway", "shop", name)) as unknown as JsonObject)["status"];
  assert.equal(await status("gateway-80"), undefined);
  assert.match(JSON.stringify(await status("gateway-9000")), /cannot bind '127\.9\.9\.2:9000'/);
  await world.api.delete({ kind: "Gateway", namespace: "shop", name: "gateway-9000" });
  await settled(world, ["LDS"]);
});

test("the HTTP API answers by its contract", async (context) => {
  await using world = await makeWorld();
  const { stateDirectory } = world;
  const { socketPath } = world.running;
  const good = JSON.stringify({ resource: virtualService("v1") });
  const wrong = JSON.stringify({ resource: { ...virtualService("v1"), spec: { hostz: [] } } });
  const expression = "/[a-z]{1000}".repeat(5);
  const route = { match: [{ uri: { regex: expression } }], route: [{ destination: { host: "catalog" } }] };
  const spoiling = JSON.stringify({
    resource: { ...virtualService("v1"), spec: { hosts: ["catalog"], http: [route] } },
  });
  const object = "/api/v1/resources/VirtualService/shop/catalog";
  const cases: readonly {
    name: string;
    path: string;
    method?: string;
    body?: string;
    expected: number;
    matches?: RegExp;
  }[] = [
    { name: "ready", path: "/ready", expected: 200, matches: /^ready\n$/ },
    { name: "status listing", path: "/debug/syncz", expected: 200, matches: /^\[\]\n$/ },
    { name: "resources", path: "/debug/configz", expected: 200, matches: /"kind":"DestinationRule"/ },
    { name: "services", path: "/debug/registryz", expected: 200, matches: /catalog\.shop\.svc\.cluster\.local/ },
    { name: "endpoints", path: "/debug/endpointz", expected: 200, matches: /"port":80/ },
    { name: "a dump of nobody", path: "/debug/config_dump?proxyID=nobody.shop", expected: 404 },
    { name: "metrics", path: "/metrics", expected: 200, matches: /^pilot_services 2$/m },
    { name: "a list", path: "/api/v1/resources/Service", expected: 200, matches: /"items":\[\{/ },
    {
      name: "a list of one namespace",
      path: "/api/v1/resources/Service?namespace=none",
      expected: 200,
      matches: /"items":\[\]/,
    },
    { name: "findings", path: "/api/v1/findings", expected: 200, matches: /"findings":\[/ },
    { name: "no such kind", path: "/api/v1/resources/Lace", expected: 404, matches: /no kind Lace/ },
    { name: "no such object", path: object, expected: 404, matches: /no VirtualService catalog in namespace shop/ },
    { name: "nothing there", path: "/lace", expected: 404 },
    { name: "a wrong method", path: "/debug/configz", method: "DELETE", expected: 405 },
    { name: "no JSON", path: object, method: "PUT", body: "{", expected: 400 },
    {
      name: "another object in the body",
      path: `${object}2`,
      method: "PUT",
      body: good,
      expected: 400,
    },
    {
      name: "a wrong resource",
      path: object,
      method: "PUT",
      body: wrong,
      expected: 422,
      matches: /hostz.*Did you mean/,
    },
    {
      name: "a resource that would spoil a table",
      path: object,
      method: "PUT",
      body: spoiling,
      expected: 422,
      matches: /more than proxies take/,
    },
    {
      name: "too large a body",
      path: object,
      method: "PUT",
      body: " ".repeat(3 * 1024 * 1024 + 1),
      expected: 413,
    },
    {
      name: "a new object",
      path: object,
      method: "PUT",
      body: good,
      expected: 201,
      matches: /"outcome":"created"/,
    },
    {
      name: "the same again",
      path: object,
      method: "PUT",
      body: good,
      expected: 200,
      matches: /"unchanged"/,
    },
    {
      name: "a bare manifest",
      path: object,
      method: "PUT",
      body: JSON.stringify(virtualService("v2")),
      expected: 200,
      matches: /"configured"/,
    },
    { name: "one object", path: object, expected: 200, matches: /"subset":"v2"/ },
    { name: "delete", path: object, method: "DELETE", expected: 200 },
    { name: "delete again", path: object, method: "DELETE", expected: 404 },
    {
      name: "delete what a file defines",
      path: "/api/v1/resources/Service/shop/catalog",
      method: "DELETE",
      expected: 409,
      matches: /mesh\.yaml:2/,
    },
    { name: "a watch from long ago", path: "/api/v1/watch?resourceVersion=1", expected: 410 },
    { name: "a watch of a wrong version", path: "/api/v1/watch?resourceVersion=x", expected: 400 },
    { name: "a watch of no kind", path: "/api/v1/watch?kinds=Lace", expected: 404 },
  ];
  for (const { name, path: where, expected, matches, ...options } of cases) {
    await context.test(name, async () => {
      const answer = await socketRequest(socketPath, where, options);
      assert.equal(answer.status, expected, answer.body);
      if (matches !== undefined) assert.match(answer.body, matches);
      if (expected >= 400) assert.equal((JSON.parse(answer.body) as { error: { code: number } }).error.code, expected);
    });
  }
  await context.test("a watch without a body is refused, not held open", async () => {
    assert.equal((await socketRequest(socketPath, "/api/v1/watch?kinds=Pod", { method: "HEAD" })).status, 405);
  });
  await context.test("only its owner may connect to the Unix socket", async () => {
    assert.equal((await stat(socketPath)).mode & 0o777, 0o600);
    assert.equal((await stat(path.join(stateDirectory, "token"))).mode & 0o777, 0o600);
  });
});

test("a watch tells what is there, and every change after it", async () => {
  await using world = await makeWorld();
  const seen: string[] = [];
  const watch: ResourceWatch = world.api.watch(["VirtualService", "DestinationRule"], {
    onChanges: (changes: readonly StoreChange[]) =>
      seen.push(...changes.map(({ type, resource }) => `${type} ${resource.kind} ${resource.metadata.name}`)),
  });
  await watch.ready;
  assert.deepEqual(seen, ["added DestinationRule catalog"]);
  await world.api.apply(virtualService("v1"));
  await world.api.apply(virtualService("v2"));
  await world.api.apply(endpoints(["127.9.9.3"]));
  await world.api.delete({ kind: "VirtualService", namespace: "shop", name: "catalog" });
  await waitFor(() => seen.length === 4, { what: "three changes" });
  assert.deepEqual(seen.slice(1), [
    "added VirtualService catalog",
    "modified VirtualService catalog",
    "deleted VirtualService catalog",
  ]);
  watch.close();
  await watch.closed;
});

test("a client that is no proxy is turned away", async () => {
  await using world = await makeWorld();
  using proxy = new FakeProxy(world, "nobody", {});
  using other = new FakeProxy(world, sidecarId, {});
  await settled(world, ["CDS", "LDS", "EDS", "RDS"]);
  assert.equal(other.responses.length > 0, true);
  assert.deepEqual(proxy.responses, []);
});

test("an address that is taken is an error, and nothing stays open behind it", async () => {
  await using world = await makeWorld();
  const { running } = world;
  const folder = await mkdtemp(path.join(tmpdir(), "control-plane-"));
  const free = { host: "127.0.0.1", port: 0 };
  for (const { xdsAddress, httpAddress } of [
    { xdsAddress: running.xdsAddress!, httpAddress: free },
    { xdsAddress: free, httpAddress: running.httpAddress },
  ]) {
    await assert.rejects(
      runManifestControlPlane({
        directory: folder,
        stateDirectory: path.join(folder, ".tulle"),
        xdsAddress,
        httpAddress,
        logging: new Logging({ level: "off" }),
      }),
      /EADDRINUSE|No address added/,
    );
  }
  await rm(folder, { recursive: true, force: true });
});
