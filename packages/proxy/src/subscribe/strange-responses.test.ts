// Responses that a foreign control plane may send: what cannot be read, what only says that something lives on, and what lives for a time.
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

const listener = (name: string): ReturnType<typeof packed> =>
  packed(ListenerSchema, {
    name,
    address: loopback(0),
    filter_chains: [
      {
        filters: [
          {
            name: "hcm",
            typed_config: {
              "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
              stat_prefix: name,
              route_config: { virtual_hosts: [] },
              http_filters: [router],
            },
          },
        ],
      },
    ],
  });

interface Stage {
  readonly proxy: RunningProxy;
  readonly server: XdsStage;
  /** Sends, and waits for the answer: what it refuses, or empty. */
  readonly send: (typeUrl: string, versionInfo: string, ...resources: ReturnType<typeof packed>[]) => Promise<string>;
  readonly listeners: () => readonly string[];
}

async function start(t: TestContext): Promise<Stage> {
  const server = await startXdsStage();
  t.after(() => server.stop());
  const bootstrap = {
    node: { id: "a", cluster: "b" },
    dynamic_resources: {
      ads_config: { api_type: "GRPC", grpc_services: [{ envoy_grpc: { cluster_name: "xds" } }] },
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
