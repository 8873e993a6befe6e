// From manifests to an answer: a control plane sends names, an agent's relay takes them out of its proxy's stream, and
// a resolver that nobody here wrote (c-ares, in Node) asks the agent's name server.
import assert from "node:assert/strict";
import { promises as dns } from "node:dns";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { startRelay } from "@tulle/agent";
import { startNames } from "@tulle/agent/names";
import { runManifestControlPlane } from "@tulle/control-plane";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import { type ResourceTypeName, connectAds } from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { waitFor } from "../tools/processes.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";

const catalog = `apiVersion: v1
kind: Service
metadata: { name: catalog, namespace: shop }
spec: { clusterIP: 10.96.0.7, clusterIPs: [10.96.0.7, "fd00::7"], selector: { app: catalog }, ports: [{ name: http, port: 80 }] }
`;
const database = (...addresses: readonly string[]): string => `apiVersion: v1
kind: Service
metadata: { name: database, namespace: shop }
spec: { clusterIP: None, selector: { app: database }, ports: [{ name: sql, port: 5432, targetPort: 15432 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: database-1, namespace: shop, labels: { kubernetes.io/service-name: database } }
addressType: IPv4
ports: [{ name: sql, port: 15432 }]
endpoints: [${addresses.map((address, index) => `{ addresses: ["${address}"], hostname: database-${index} }`).join(", ")}]
`;

const nodeId = "sidecar~10.244.0.9~web-1.shop~shop.svc.cluster.local";

interface World {
  readonly folder: string;
  readonly types: Set<ResourceTypeName>;
  readonly resolver: dns.Resolver;
  /** Ends the agent; another one with the same folder comes in its place. */
  restartAgent(): Promise<void>;
}

async function agentOf(folder: string, controlPlane: string, types: Set<ResourceTypeName>) {
  const open = new AsyncDisposableStack();
  const logging = new Logging({ level: "off" });
  const resolverFile = path.join(folder, "resolv.conf");
  await writeFile(resolverFile, "nameserver 127.0.0.1\n");
  const names = await startNames({
    addresses: [{ address: "127.0.0.1", port: 0 }],
    namespace: "shop",
    resolverFile,
    serviceDomain: "svc.cluster.local",
    ownDomains: ["cluster.local"],
    metrics: new MetricRegistry(),
    log: logging.logger("dns"),
  });
  open.use(names);
  const socketPath = path.join(folder, "xds.sock");
  const relay = await startRelay({
    socketPath,
    controlPlane,
    statePath: path.join(folder, "xds-state"),
    nodeId,
    names: names.subscription,
    log: logging.logger("relay"),
    graceMs: 50,
    backOff: { baseMs: 20, maxMs: 100 },
  });
  open.defer(() => relay.close());
  const proxy = connectAds({
    target: `unix:${socketPath}`,
    node: create(NodeSchema, { id: nodeId, metadata: { INTERCEPTION_MODE: "NONE" } }),
    handlers: {
      onResponse: ({ type }) => {
        types.add(type);
        return [];
      },
    },
  });
  open.defer(() => proxy.close());
  proxy.subscribe("CDS", "*");
  proxy.subscribe("LDS", "*");
  const [at] = names.addresses;
  return { open, server: `127.0.0.1:${at!.port}` };
}

async function makeWorld(t: TestContext, manifests: Readonly<Record<string, string>>) {
  const folder = temporaryFolder("tulle-dns-");
  for (const [name, text] of Object.entries(manifests)) await writeFile(path.join(folder, name), text);
  const running = await runManifestControlPlane({
    directory: folder,
    stateDirectory: path.join(folder, ".tulle"),
    xdsAddress: { host: "127.0.0.1", port: 0 },
    httpAddress: { host: "127.0.0.1", port: 0 },
    debounce: { quietMs: 5, maxMs: 100 },
    logging: new Logging({ level: "off" }),
  });
  let isClosed = false;
  const close = async (): Promise<void> => {
    if (!isClosed) await running.close();
    isClosed = true;
  };
  t.after(close);
  const types = new Set<ResourceTypeName>();
  const resolver = new dns.Resolver({ timeout: 10_000, tries: 1 });
  const url = `http://127.0.0.1:${running.xdsAddress!.port}`;
  let agent = await agentOf(folder, url, types);
  resolver.setServers([agent.server]);
  t.after(() => agent.open.disposeAsync());
  const world: World = {
    folder,
    types,
    resolver,
    restartAgent: async () => {
      await agent.open.disposeAsync();
      agent = await agentOf(folder, url, types);
      resolver.setServers([agent.server]);
    },
  };
  return { ...world, close };
}

const addressesOf = (resolver: dns.Resolver, name: string): Promise<readonly string[]> =>
  resolver.resolve4(name).then(
    (addresses) => addresses.sort(),
    (error: NodeJS.ErrnoException) => [error.code ?? error.message],
  );

async function until(resolver: dns.Resolver, name: string, expected: readonly string[]): Promise<void> {
  let seen: readonly string[] = [];
  const isThere = async (): Promise<boolean> => {
    seen = await addressesOf(resolver, name);
    return seen.join() === expected.join();
  };
  await waitFor(isThere, { what: `${name} to be ${expected.join()}`, details: () => `it is ${seen.join()}` });
}

test("names follow Services and their pods, and outlive the control plane", async (t) => {
  const world = await makeWorld(t, { "catalog.yaml": catalog, "database.yaml": database("10.244.0.5", "10.244.1.6") });
  const { folder, resolver, types } = world;
  await until(resolver, "catalog", ["10.96.0.7"]);
  assert.deepEqual(await resolver.resolve6("catalog.shop.svc.cluster.local"), ["fd00::7"]);
  assert.deepEqual(await addressesOf(resolver, "database.shop"), ["10.244.0.5", "10.244.1.6"]);
  assert.deepEqual(await addressesOf(resolver, "database-1.database"), ["10.244.1.6"]);
  const services = await resolver.resolveSrv("_sql._tcp.database.shop.svc.cluster.local");
  assert.deepEqual(services.map(({ name, port }) => `${name}:${port}`).sort(), [
    "database-0.database.shop.svc.cluster.local:15432",
    "database-1.database.shop.svc.cluster.local:15432",
  ]);
  assert.deepEqual(await resolver.reverse("10.96.0.7"), ["catalog.shop.svc.cluster.local"]);
  assert.deepEqual(await addressesOf(resolver, "users.shop.svc.cluster.local"), ["ENOTFOUND"]);

  await writeFile(path.join(folder, "database.yaml"), database("10.244.2.7"));
  await until(resolver, "database", ["10.244.2.7"]);
  await writeFile(path.join(folder, "users.yaml"), catalog.replaceAll("catalog", "users").replaceAll("0.7", "0.8"));
  await until(resolver, "users", ["10.96.0.8"]);
  await writeFile(path.join(folder, "users.yaml"), "");
  await until(resolver, "users.shop.svc.cluster.local", ["ENOTFOUND"]);
  await until(resolver, "catalog", ["10.96.0.7"]);

  await world.close();
  assert.deepEqual(await addressesOf(resolver, "catalog"), ["10.96.0.7"]);
  await world.restartAgent();
  await until(resolver, "database.shop", ["10.244.2.7"]);
  assert.ok(types.size > 0 && !types.has("NDS"), "the proxy is never sent names");
});
