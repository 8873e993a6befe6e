// The step in which a new configuration takes the place of the old one.
import { MetricRegistry } from "@tulle/telemetry";
import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { countRequest } from "../upstream/cluster-load.ts";
import type { RuntimeCluster } from "../cluster/runtime-cluster.ts";
import { compileCluster } from "../compile/compile-cluster.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import { handBuiltConnectionManager, handBuiltListener, prefixRoutes } from "../testing/hand-built-runtime.ts";
import { accepted, fromConfiguration } from "../testing/from-configuration.ts";
import type { CheckQueue } from "../cluster/health-check/check-queue.ts";
import type { ListenerHost } from "../listener/listener-host.ts";
import { RuntimeOwner } from "./runtime-owner.ts";

const scope = detachedScope({});
const clusterOf = (name: string): RuntimeCluster =>
  accepted(compileCluster(fromConfiguration(ClusterSchema, { name, alt_stat_name: "shared" }), scope)).cluster;

test("a cluster goes on with the load of the one whose place it takes, and another does not", () => {
  const owner = new RuntimeOwner({
    listenerHost: {} as ListenerHost,
    healthChecks: {} as CheckQueue,
    drainTimeMs: 0,
    metrics: new MetricRegistry(),
  });
  const [old, next, other] = [clusterOf("a"), clusterOf("a"), clusterOf("b")];
  owner.swap({ clusters: new Map([["a", old]]) });
  countRequest(old, 1);
  owner.swap({
    clusters: new Map([
      ["a", next],
      ["b", other],
    ]),
  });
  assert.deepEqual([next.load.requests, other.load.requests], [1, 0]);
  // The request ends on the cluster that it has chosen.
  countRequest(old, -1);
  assert.equal(next.load.requests, 0);
  assert.equal(next.stats.upstreamRequestsActive.value, 0);
});

test("listeners that are closed at the end are counted", async () => {
  const metrics = new MetricRegistry();
  const owner = new RuntimeOwner({
    listenerHost: { apply: async () => undefined, stop: async () => undefined } as unknown as ListenerHost,
    healthChecks: {} as CheckQueue,
    drainTimeMs: 0,
    metrics,
  });
  const log = { log: () => undefined };
  await owner.applyListener(handBuiltListener(handBuiltConnectionManager(prefixRoutes({}), log), 0, "a"));
  assert.equal(owner.listenerStats.stopped.value, 0);
  await owner.stopListeners();
  assert.equal(owner.listenerStats.stopped.value, 1);
});
