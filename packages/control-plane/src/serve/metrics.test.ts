// Each metric of the control plane moves for the reason that its name says, in a whole control plane with a proxy.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ApiClient } from "@tulle/config";
import { Logging } from "@tulle/telemetry";
import { connectAds, resourceType } from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { type RunningManifestControlPlane, runManifestControlPlane } from "../run-manifest-control-plane.ts";
import { connectRaw, framed, openStream } from "../testing/raw-stream.ts";

/** As it is written, with all that a schema fills in left out. */
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

const service: Manifest = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "catalog", namespace: "shop" },
  spec: { selector: { app: "catalog" }, ports: [{ name: "http", port: 80, targetPort: 3000 }] },
};
const virtualService = (spec: unknown = { hosts: ["catalog"] }): Manifest => ({
  apiVersion: "networking.istio.io/v1",
  kind: "VirtualService",
  metadata: { name: "catalog", namespace: "shop" },
  spec: { http: [{ route: [{ destination: { host: "catalog" } }] }], ...(spec as object) },
});
const slice = (ready: boolean): Manifest => ({
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name: "catalog-1", namespace: "shop", labels: { "kubernetes.io/service-name": "catalog" } },
  addressType: "IPv4",
  ports: [{ name: "http", port: 3000 }],
  endpoints: [{ addresses: ["127.9.9.3"], conditions: { ready } }],
});
const secret: Manifest = {
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "key", namespace: "shop" },
  stringData: { key: "value" },
};
const meshConfig: Manifest = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "tulle", namespace: "tulle-system" },
  data: { mesh: "outboundTrafficPolicy: { mode: REGISTRY_ONLY }\n" },
};
const pod: Manifest = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web-2", namespace: "shop", labels: { app: "web" } },
  spec: { containers: [{ name: "app" }] },
};

function apply(api: ApiClient, manifest: Manifest): ReturnType<ApiClient["apply"]> {
  return api.apply(manifest as unknown as Parameters<ApiClient["apply"]>[0]);
}

interface World {
  readonly running: RunningManifestControlPlane;
  readonly api: ApiClient;
  /** Types that the proxy refuses from now on. */
  readonly refused: Set<string>;
  series(name: string): Promise<number | undefined>;
}

/** A control plane with one Service, and a sidecar that has all of its configuration. */
async function makeWorld(context: TestContext): Promise<World> {
  const running = await runManifestControlPlane({
    stateDirectory: temporaryFolder("control-plane-metrics-"),
    xdsAddress: { host: "127.0.0.1", port: 0 },
    httpAddress: { host: "127.0.0.1", port: 0 },
    debounce: { quietMs: 5, maxMs: 100 },
    version: "9.9",
    logging: new Logging({ level: "off" }),
  });
  context.after(() => running.close());
  const api = new ApiClient({ endpoint: { socketPath: running.socketPath } });
  await apply(api, service);
  const refused = new Set<string>();
  const client = connectAds({
    target: `http://127.0.0.1:${running.xdsAddress!.port}`,
    node: create(NodeSchema, {
      id: "sidecar~127.9.9.1~web-1.shop~shop.svc.cluster.local",
      metadata: { INTERCEPTION_MODE: "NONE" },
    }),
    handlers: {
      onResponse: (response) => {
        if (response.type === "CDS") client.subscribe("EDS", new Set(["outbound|80||catalog.shop.svc.cluster.local"]));
        const [name = ""] = response.resources.keys();
        return refused.has(response.type) ? [{ name, message: "not today" }] : [];
      },
    },
  });
  context.after(() => client.close());
  for (const type of ["CDS", "LDS"] as const) client.subscribe(type, "*");
  client.subscribe("RDS", new Set(["http_proxy"]));
  const series = async (name: string): Promise<number | undefined> => {
    const text = await (await fetch(`http://127.0.0.1:${running.httpAddress.port}/metrics`)).text();
    const line = text.split("\n").find((each) => each.startsWith(`${name} `));
    return line === undefined ? undefined : Number(line.slice(name.length + 1));
  };
  await waitFor(async () => ((await series('pilot_xds_pushes{type="rds"}')) ?? 0) > 0, { what: "the first push" });
  return { running, api, refused, series };
}

interface Move {
  readonly series: string;
  readonly by: (world: World, context: TestContext) => Promise<unknown> | void;
  /** By how much at the least; a fall where it is negative. */
  readonly change?: number;
}

const applied =
  (manifest: Manifest) =>
  ({ api }: World): Promise<unknown> =>
    apply(api, manifest);
const changedRoutes = applied(virtualService());
const refusedRoutes: Move["by"] = ({ refused, api }) => {
  refused.add("RDS");
  return apply(api, virtualService({ hosts: ["catalog", "next.example"] }));
};
const group = 'group="networking.tulle.io",version="v1",resource="virtualservices"';

/** In the order in which one world goes through them. */
const moves: readonly Move[] = [
  { series: 'pilot_k8s_reg_events{type="EndpointSlice",event="add"}', by: applied(slice(false)) },
  { series: "pilot_endpoint_not_ready", by: applied(slice(true)), change: -1 },
  { series: 'pilot_inbound_updates{type="eds"}', by: applied(slice(false)) },
  { series: 'pilot_push_triggers{type="endpoint"}', by: applied(slice(true)) },
  { series: 'pilot_xds_pushes{type="eds"}', by: applied(slice(false)) },
  { series: 'pilot_k8s_cfg_events{type="VirtualService",event="add"}', by: changedRoutes },
  {
    series: 'pilot_k8s_cfg_events{type="VirtualService",event="update"}',
    by: applied(virtualService({ hosts: ["catalog", "shop.example"] })),
  },
  { series: "pilot_virt_services", by: remove("VirtualService", "catalog"), change: -1 },
  { series: 'pilot_k8s_cfg_events{type="VirtualService",event="delete"}', by: changeAndRemove },
  { series: 'pilot_push_triggers{type="config"}', by: changedRoutes },
  { series: 'pilot_inbound_updates{type="config"}', by: remove("VirtualService", "catalog") },
  { series: 'pilot_xds_pushes{type="rds"}', by: changedRoutes },
  { series: 'pilot_xds_push_time_count{type="rds"}', by: remove("VirtualService", "catalog") },
  { series: 'pilot_xds_config_size_bytes_count{type="rds"}', by: changedRoutes },
  { series: "pilot_xds_send_time_count", by: remove("VirtualService", "catalog") },
  { series: "pilot_proxy_convergence_time_count", by: changedRoutes },
  { series: "pilot_proxy_queue_time_count", by: remove("VirtualService", "catalog") },
  { series: "pilot_debounce_time_count", by: changedRoutes },
  { series: "pilot_pushcontext_init_seconds_count", by: remove("VirtualService", "catalog") },
  { series: `galley_validation_passed{${group}}`, by: changedRoutes },
  { series: `galley_validation_failed{${group},reason="invalid_resource"}`, by: applyWrong },
  { series: 'pilot_push_triggers{type="global"}', by: applied(meshConfig) },
  { series: 'pilot_push_triggers{type="secret"}', by: applied(secret) },
  { series: 'pilot_push_triggers{type="proxy"}', by: applied(pod) },
  { series: 'pilot_k8s_reg_events{type="Pods",event="delete"}', by: remove("Pod", "web-2") },
  {
    series: 'pilot_push_triggers{type="service"}',
    by: applied({ ...service, metadata: { ...service.metadata, name: "next" } }),
  },
  { series: "pilot_services", by: remove("Service", "next"), change: -1 },
  {
    series: 'pilot_inbound_updates{type="svc"}',
    by: applied({ ...service, metadata: { ...service.metadata, name: "next" } }),
  },
  { series: 'pilot_inbound_updates{type="svcdelete"}', by: remove("Service", "next") },
  { series: 'pilot_xds{version="9.9"}', by: connectAnother },
  { series: "pilot_no_ip", by: connectAnother },
  { series: 'pilot_push_triggers{type="proxyrequest"}', by: connectAnother },
  { series: 'pilot_xds_expired_nonce{type="cds"}', by: connectAnother },
  {
    series: 'pilot_total_xds_rejects{type="rds"}',
    by: refusedRoutes,
  },
  { series: "pilot_xds_rds_reject", by: remove("VirtualService", "catalog") },
];

function remove(kind: "VirtualService" | "Pod" | "Service", name: string): Move["by"] {
  return ({ api }) => api.delete({ kind, namespace: "shop", name });
}

async function changeAndRemove(world: World, context: TestContext): Promise<void> {
  await changedRoutes(world);
  await remove("VirtualService", "catalog")(world, context);
}

async function applyWrong({ api }: World): Promise<void> {
  const { outcome } = await apply(api, virtualService({ hostz: [] }));
  assert.equal(outcome, "rejected");
}

/** A client that repeats an answer. */
async function connectAnother({ running }: World, context: TestContext): Promise<void> {
  const { stream, stands } = openStream(connectRaw(context, running));
  const { typeUrl } = resourceType("CDS");
  stream.write(framed({ node: { id: "sidecar~127.9.9.7~x.shop~shop.svc.cluster.local" }, typeUrl }));
  await waitFor(stands, { what: "the stream" });
  stream.write(framed({ typeUrl, responseNonce: "long ago" }));
}

test("metrics of the control plane", async (context) => {
  const world = await makeWorld(context);
  for (const { series, by, change = 1 } of moves) {
    await context.test(series, async () => {
      const before = (await world.series(series)) ?? 0;
      await by(world, context);
      const hasMoved = async (): Promise<boolean> => {
        const moved = ((await world.series(series)) ?? 0) - before;
        return change < 0 ? moved <= change : moved >= change;
      };
      await waitFor(hasMoved, { what: `${series} to move from ${before}` });
    });
  }
  await context.test("what is said once", async () => {
    assert.equal(await world.series('pilot_info{version="9.9"}'), 1);
    assert.equal(await world.series('istio_build{component="pilot",tag="9.9"}'), 1);
    assert.equal(await world.series("pilot_total_xds_internal_errors"), 0);
    assert.ok(((await world.series("process_cpu_seconds_total")) ?? 0) > 0);
  });
});
