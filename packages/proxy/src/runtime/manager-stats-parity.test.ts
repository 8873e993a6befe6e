// What clusters and listeners that come, change, warm and go move in `cluster_manager.*` and `listener_manager.*`,
// beside a stock Envoy that gets the same configuration.
import assert from "node:assert/strict";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Any } from "@bufbuild/protobuf/wkt";
import { ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { adsBootstrap, adsSource } from "../testing/ads-bootstrap.ts";
import { connectionManager, extension, loopback, router } from "../testing/envoy-json.ts";
import { type Side, startEnvoy, startOurs } from "../testing/parity-pair.ts";
import { emptyCluster, packed, startXdsStage, typeUrls, type XdsStage } from "../testing/xds-stage.ts";

const chainOf = (typed_config: object) => ({
  filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config }],
});
const chain = (more: object) => chainOf(connectionManager([], more));
const waitingChain = (stat_prefix: string) =>
  chainOf({
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix,
    rds: { route_config_name: "routes", config_source: adsSource },
    http_filters: [router],
  });
const listener = (name: string, more: object = {}, address: object = loopback(0)): Any =>
  packed(ListenerSchema, { name, address, filter_chains: [chain(more)] });
/** Waits for routes that do not come. */
const warmingListener = (stat_prefix: string): Any =>
  packed(ListenerSchema, { name: "warming", address: loopback(0), filter_chains: [waitingChain(stat_prefix)] });
/** Waits for endpoints that do not come. */
const warmingCluster = (connect_timeout: string): Any =>
  emptyCluster("warming", { type: "EDS", connect_timeout, eds_cluster_config: { eds_config: adsSource } });

const bootstrap = (xdsPort: number): string =>
  adsBootstrap(xdsPort, ["cds_config", "lds_config"], {
    listeners: [{ name: "static", address: loopback(0), filter_chains: [chain({})] }],
  });

const elsewhere = { socket_address: { address: "127.0.0.2", port_value: 0 } };
const blocker = net.createServer();

interface Row {
  readonly name: string;
  readonly type: "clusters" | "listeners";
  readonly resources: () => readonly Any[];
}

const rows: readonly Row[] = [
  { name: "listeners come", type: "listeners", resources: () => [listener("a"), listener("b")] },
  {
    name: "a listener gets another filter chain",
    type: "listeners",
    resources: () => [listener("a", { stat_prefix: "other" }), listener("b")],
  },
  {
    name: "a listener gets another address",
    type: "listeners",
    resources: () => [listener("a", { stat_prefix: "other" }), listener("b", {}, elsewhere)],
  },
  { name: "a listener waits for routes", type: "listeners", resources: () => [listener("b"), warmingListener("one")] },
  { name: "it changes meanwhile", type: "listeners", resources: () => [listener("b"), warmingListener("two")] },
  { name: "it goes meanwhile", type: "listeners", resources: () => [listener("b")] },
  {
    name: "an address is taken",
    type: "listeners",
    resources: () => [listener("b"), listener("taken", {}, loopback((blocker.address() as net.AddressInfo).port))],
  },
  { name: "all listeners go", type: "listeners", resources: () => [] },
  { name: "a cluster comes", type: "clusters", resources: () => [emptyCluster("a")] },
  { name: "it changes", type: "clusters", resources: () => [emptyCluster("a", { connect_timeout: "2s" })] },
  { name: "a cluster waits for endpoints", type: "clusters", resources: () => [warmingCluster("1s")] },
  { name: "it changes meanwhile", type: "clusters", resources: () => [warmingCluster("2s")] },
  { name: "it goes meanwhile", type: "clusters", resources: () => [] },
];

/** Left out by the reasons in stat-names-parity.test.ts. */
const excepted = /^cluster_manager\.(cluster_updated|update_)|workers_pinned:/;

async function stats({ adminPort }: Side): Promise<readonly string[]> {
  const filter = encodeURIComponent("^(cluster|listener)_manager\\.[a-z_]+$");
  const page = await (await fetch(`http://127.0.0.1:${adminPort}/stats?filter=${filter}`)).text();
  return page
    .split("\n")
    .filter((line) => line !== "" && !excepted.test(line))
    .sort();
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-manager-stats-"));
let xds: XdsStage;
const sides: Side[] = [];

before(async () => {
  blocker.listen(0, "127.0.0.1");
  await once(blocker, "listening");
  xds = await startXdsStage({
    onRequest: ({ versionInfo, typeUrl }, stream) => {
      const isAwaited = typeUrl === typeUrls.clusters || typeUrl === typeUrls.listeners;
      if (isAwaited && versionInfo === "" && stream.requests.filter((other) => other.typeUrl === typeUrl).length === 1)
        stream.send(typeUrl, "start", []);
    },
  });
  sides.push(await startOurs("", () => bootstrap(xds.port)));
  sides.push(await startEnvoy(folder, 1, () => bootstrap(xds.port)));
});

after(async () => {
  for (const side of sides) await side.stop();
  await xds.stop();
  blocker.close();
  fs.rmSync(folder, { recursive: true });
});

/** Waits until both have the same, and other than at the start; what is not so in time is shown. */
async function compare(start: readonly string[]): Promise<void> {
  const hasMoved = async (): Promise<boolean> => {
    const [ours, envoys] = [await stats(sides[0]!), await stats(sides[1]!)];
    return ours.join() === envoys.join() && ours.join() !== start.join();
  };
  await waitFor(hasMoved, { what: "the same statistics", timeoutMs: 20_000 }).catch(() => undefined);
  const ours = await stats(sides[0]!);
  assert.deepEqual(ours, await stats(sides[1]!));
  assert.notDeepEqual(ours, start);
}

test("at the start", () => compare([]));

for (const [index, { name, type, resources }] of rows.entries()) {
  test(name, async () => {
    const start = await stats(sides[0]!);
    const sent = resources();
    for (const stream of xds.streams) stream.send(typeUrls[type], `v${index}`, sent);
    await compare(start);
  });
}
