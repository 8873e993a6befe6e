// Responses that a foreign control plane may send: what cannot be read, what only says that something lives on, and
// what lives for a time.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { parseBootstrap } from "../bootstrap/read-bootstrap.ts";
import { type RunningProxy, runProxy } from "../run-proxy.ts";
import { extension, http2Options, loopback, router, staticCluster } from "../testing/envoy-json.ts";
import {
  brokenResource,
  emptyCluster,
  livingFor,
  packed,
  startXdsStage,
  typeUrls,
  type XdsStage,
  type XdsStream,
} from "../testing/xds-stage.ts";

const manager = (stat_prefix: string, routes: object): object => ({
  name: "hcm",
  typed_config: {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix,
    http_filters: [router],
    ...routes,
  },
});

const listener = (name: string): ReturnType<typeof packed> =>
  packed(ListenerSchema, {
    name,
    address: loopback(0),
    filter_chains: [{ filters: [manager(name, { route_config: { virtual_hosts: [] } })] }],
  });

interface Stage {
  readonly proxy: RunningProxy;
  readonly server: XdsStage;
  /** Sends, and waits for the answer: what it refuses, or empty. */
  readonly send: (typeUrl: string, versionInfo: string, ...resources: ReturnType<typeof packed>[]) => Promise<string>;
  readonly listeners: () => readonly string[];
  /** Of `/stats`; undefined = there is none of that name. */
  readonly stat: (name: string) => number | string | undefined;
}

async function start(t: TestContext, ads: object = {}): Promise<Stage> {
  const server = await startXdsStage();
  t.after(() => server.stop());
  const bootstrap = {
    node: { id: "a", cluster: "b" },
    dynamic_resources: {
      ads_config: { api_type: "GRPC", grpc_services: [{ envoy_grpc: { cluster_name: "xds" } }], ...ads },
      cds_config: { ads: {} },
      lds_config: { ads: {} },
    },
    static_resources: {
      clusters: [staticCluster("xds", [server.port], { typed_extension_protocol_options: http2Options })],
    },
  };
  const logging = new Logging({ sink: () => {} });
  const proxy = await runProxy({ bootstrap: parseBootstrap(JSON.stringify(bootstrap), "b.json"), logging });
  t.after(() => proxy.close());
  const stream = (): XdsStream => server.streams[0]!;
  await waitFor(() => server.streams[0]?.requests.length === 1, { what: "the first request" });
  return {
    proxy,
    server,
    async send(typeUrl, versionInfo, ...resources) {
      const nonce = stream().send(typeUrl, versionInfo, resources);
      const answer = await waitFor(() => stream().requests.find(({ responseNonce }) => responseNonce === nonce), {
        what: `an answer to ${versionInfo}`,
      });
      return answer.errorDetail?.message ?? "";
    },
    stat: (name) => {
      for (const { statName, metric } of proxy.metrics.allSeries()) {
        if (statName === name && "value" in metric) return metric.value;
      }
      return undefined;
    },
    listeners: () => [...proxy.listenerAddresses().keys()].sort(),
  };
}

for (const { name, bad, expected } of [
  {
    name: "that cannot be decoded",
    bad: brokenResource(typeUrls.listeners, "b"),
    expected: /^Error adding\/updating listener\(s\) b: cannot be decoded/,
  },
  {
    name: "that is of another type",
    bad: emptyCluster("b"),
    expected: /^Error adding\/updating listener\(s\) b: is a .*Cluster, not a .*Listener$/,
  },
  {
    name: "whose name cannot be read",
    bad: brokenResource(typeUrls.listeners, ""),
    expected: /listener\(s\) #1: has no name/,
  },
]) {
  test(`a response with a resource ${name} removes nothing, and the next good one does`, async (t) => {
    const { send, listeners } = await start(t);
    await send(typeUrls.clusters, "1");
    assert.equal(await send(typeUrls.listeners, "1", listener("a"), listener("b"), listener("c")), "");
    assert.match(await send(typeUrls.listeners, "2", listener("a"), bad, listener("d")), expected);
    assert.deepEqual(listeners(), ["a", "b", "c", "d"]);
    assert.equal(await send(typeUrls.listeners, "3", listener("a")), "");
    assert.deepEqual(listeners(), ["a"]);
  });
}

test("a resource that is refused for what it says leaves the removal of others in effect, as in Envoy", async (t) => {
  const { send, listeners } = await start(t);
  await send(typeUrls.clusters, "1");
  await send(typeUrls.listeners, "1", listener("a"), listener("b"), listener("c"));
  const bad = packed(ListenerSchema, { name: "b", address: loopback(0) });
  assert.match(await send(typeUrls.listeners, "2", bad, listener("d")), /listener\(s\) b: .*no filter chains/);
  assert.deepEqual(listeners(), ["b", "d"]);
});

test("a heartbeat removes nothing; what is not heard of in its time goes, and it alone", async (t) => {
  const { send, listeners, server } = await start(t);
  await send(typeUrls.clusters, "1");
  await send(
    typeUrls.listeners,
    "1",
    livingFor(3600, "a", listener("a")),
    livingFor(3600, "b", listener("b")),
    listener("c"),
  );
  assert.equal(await send(typeUrls.listeners, "1", livingFor(3600, "a")), "");
  assert.deepEqual(listeners(), ["a", "b", "c"]);
  assert.equal(await send(typeUrls.listeners, "1", livingFor(0.05, "b"), livingFor(3600, "nobody")), "");
  await waitFor(() => listeners().join() === "a,c", { what: "the end of b", details: () => listeners().join() });
  // It is over for this response alone: nobody is told, and the next one brings it back.
  const said = server.streams[0]!.requests.length;
  assert.equal(await send(typeUrls.listeners, "2", listener("a"), listener("b"), listener("c")), "");
  assert.equal(server.streams[0]!.requests.length, said + 1);
  assert.deepEqual(listeners(), ["a", "b", "c"]);
});

test("a heartbeat beside a resource vouches for it in the full list", async (t) => {
  const { send, listeners } = await start(t);
  await send(typeUrls.clusters, "1");
  await send(typeUrls.listeners, "1", livingFor(3600, "a", listener("a")), listener("b"), listener("c"));
  assert.equal(await send(typeUrls.listeners, "2", livingFor(3600, "a"), listener("b")), "");
  assert.deepEqual(listeners(), ["a", "b"]);
});

const source = (initial_fetch_timeout: string): object => ({ ads: {}, initial_fetch_timeout });

test("what is awaited is awaited for as long as its own source says", async (t) => {
  const { send, stat, proxy, listeners } = await start(t);
  const eds = (name: string, time: string): ReturnType<typeof packed> =>
    emptyCluster(name, { type: "EDS", eds_cluster_config: { eds_config: source(time) } });
  await send(typeUrls.clusters, "1", eds("brief", "0.05s"));
  await waitFor(() => stat("cluster.brief.init_fetch_timeout") === 1, { what: "the end of the wait for endpoints" });
  const byRds = (name: string, time: string): ReturnType<typeof packed> =>
    packed(ListenerSchema, {
      name,
      address: loopback(0),
      filter_chains: [
        { filters: [manager(name, { rds: { route_config_name: `${name}-routes`, config_source: source(time) } })] },
      ],
    });
  await waitFor(() => stat("listener_manager.lds.update_attempt") === 1, { what: "listeners to be asked for" });
  await send(typeUrls.listeners, "1", byRds("brief", "0.05s"), byRds("patient", "0s"));
  await waitFor(() => stat("http.brief.rds.brief-routes.init_fetch_timeout") === 1, { what: "the end of the wait" });
  await waitFor(() => listeners().includes("brief"), { what: "the listener without routes" });
  assert.equal(stat("http.patient.rds.patient-routes.init_fetch_timeout"), undefined);
  assert.deepEqual(listeners(), ["brief"]);
  await proxy.close();
});

test("statistics of subscriptions have Envoy's names, and tell what happened", async (t) => {
  const { send, stat, server } = await start(t);
  assert.equal(stat("control_plane.connected_state"), 1);
  await send(typeUrls.clusters, "1", emptyCluster("a"));
  await send(typeUrls.clusters, "2", emptyCluster("a", { lb_policy: "MAGLEV" }));
  const cds = (name: string): unknown => stat(`cluster_manager.cds.${name}`);
  assert.deepEqual(["update_attempt", "update_success", "update_rejected", "update_failure", "version_text"].map(cds), [
    3,
    1,
    1,
    0,
    "1",
  ]);
  assert.notEqual(cds("version"), 0);
  assert.notEqual(cds("update_time"), 0);
  assert.equal(stat("control_plane.identifier"), "stage");
  server.streams[0]!.end();
  await waitFor(() => cds("update_failure") === 1, { what: "the end of the stream to count" });
});

for (const { name, ads, most } of [
  { name: "without a setting", ads: {}, most: 100 },
  { name: "as its bootstrap says", ads: { rate_limit_settings: { max_tokens: 5, fill_rate: 0.01 } }, most: 5 },
]) {
  test(`a server that repeats a bad resource is held back: ${name}`, async (t) => {
    const { server, stat } = await start(t, ads);
    const [stream] = server.streams;
    const bad = emptyCluster("a", { lb_policy: "MAGLEV" });
    let answered = 0;
    await waitFor(
      () => {
        // Each refusal is answered with the same.
        const refusals = stream!.requests.length;
        if (answered < refusals) {
          answered = refusals;
          stream!.send(typeUrls.clusters, "1", [bad]);
        }
        return stat("control_plane.rate_limit_enforced") !== 0;
      },
      { what: "a refusal to be held back", intervalMs: 1 },
    );
    // The first request of a stream counts only where all do.
    assert.ok(stream!.requests.length >= Math.min(most, 5) && stat("control_plane.pending_requests") === 1);
  });
}
