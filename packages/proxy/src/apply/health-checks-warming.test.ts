// Clusters that come by CDS and EDS with health checks: nobody is asked before the first check, and a host that is well
// outlives its endpoint.
import assert from "node:assert/strict";
import http from "node:http";
import type net from "node:net";
import { type TestContext, test } from "node:test";
import { systemClock } from "@tulle/timing";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { ClusterLoadAssignmentSchema } from "@tulle/xds/envoy/config/endpoint/v3/endpoint_pb";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { CheckQueue } from "../cluster/health-check/check-queue.ts";
import { healthFlags } from "../cluster/host-health.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import type { ListenerHost } from "../listener/listener-host.ts";
import { ConfigRecords } from "../runtime/config-records.ts";
import { RuntimeOwner } from "../runtime/runtime-owner.ts";
import { loopback } from "../testing/envoy-json.ts";
import { fromConfiguration } from "../testing/from-configuration.ts";
import { DataPath } from "../worker/data-path.ts";
import { AppliedClusters } from "./applied-clusters.ts";

interface CheckedHost {
  readonly port: number;
  status: number;
  /** Checks that wait for their answer. */
  readonly held: http.ServerResponse[];
  isHeld: boolean;
}

async function startHost(t: TestContext, isHeld = false): Promise<CheckedHost> {
  const held: http.ServerResponse[] = [];
  const server = http.createServer((_request, response) => {
    if (host.isHeld) held.push(response);
    else response.writeHead(host.status).end();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const host = { port: (server.address() as net.AddressInfo).port, status: 200, held, isHeld };
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return host;
}

function release(host: CheckedHost): void {
  host.isHeld = false;
  for (const response of host.held.splice(0)) response.writeHead(host.status).end();
}

function stage(t: TestContext) {
  const logging = new Logging({ sink: () => {} });
  const dataPath = new DataPath({ logging });
  const owner = new RuntimeOwner({
    listenerHost: {} as ListenerHost,
    healthChecks: new CheckQueue(dataPath),
    drainTimeMs: 0,
    metrics: new MetricRegistry(),
  });
  let warm = 0;
  const clusters = new AppliedClusters({
    owner,
    records: new ConfigRecords(),
    scope: detachedScope({ logging }),
    clock: systemClock,
    initialFetchTimeoutMs: 0,
    onEndpointNames: () => undefined,
    onSecretSlots: () => undefined,
    onAllWarm: () => (warm += 1),
  });
  t.after(() => {
    clusters.close();
    owner.stopClusters();
  });
  const response = (name: string, message: unknown): never =>
    ({ resources: new Map([[name, message]]), versions: new Map(), removed: [], versionInfo: "1" }) as never;
  return {
    owner,
    warm: () => warm,
    cds: (more: object = {}) => {
      const message = fromConfiguration(ClusterSchema, {
        name: "c",
        type: "EDS",
        eds_cluster_config: { eds_config: { ads: {} } },
        health_checks: [
          {
            timeout: "60s",
            interval: "0.1s",
            no_traffic_interval: "0.1s",
            unhealthy_threshold: 1,
            healthy_threshold: 1,
            http_health_check: { path: "/check" },
          },
        ],
        ...more,
      });
      return clusters.onClusters(response("c", message));
    },
    eds: (...hosts: CheckedHost[]) => {
      const endpoints = hosts.map(({ port }) => ({ endpoint: { address: loopback(port) } }));
      const json = { cluster_name: "c", endpoints: [{ lb_endpoints: endpoints }] };
      return clusters.onEndpoints(response("c", fromConfiguration(ClusterLoadAssignmentSchema, json)));
    },
    /** Ports with flags, and who would be asked. */
    hosts: () =>
      (owner.cluster("c")?.hosts ?? []).map((host) => `${host.addressText} ${healthFlags(host).join(" ")}`.trim()),
    chosen: () => {
      const balancer = owner.cluster("c")!.loadBalancer;
      const ports = Array.from({ length: 20 }, () => balancer.chooseHost(undefined)?.addressText);
      return [...new Set(ports)].map(String).sort();
    },
  };
}

const at = (host: CheckedHost): string => `127.0.0.1:${host.port}`;

test("a cluster serves once its hosts were checked for the first time, and a new version likewise", async (t) => {
  const host = await startHost(t, true);
  const { cds, eds, owner, warm, hosts } = stage(t);
  await cds();
  assert.equal(warm(), 0);
  eds(host);
  await waitFor(() => host.held.length === 1, { what: "the first check" });
  assert.deepEqual([owner.cluster("c"), warm()], [undefined, 0]);
  host.status = 503;
  release(host);
  await waitFor(() => warm() > 0, { what: "the cluster to be warm" });
  assert.deepEqual(hosts(), [`${at(host)} failed_active_hc`]);

  const first = owner.cluster("c");
  host.isHeld = true;
  await cds({ connect_timeout: "3s" });
  assert.equal(owner.cluster("c"), first, "the version before serves while the new one warms");
  host.status = 200;
  await waitFor(() => host.held.length > 0, { what: "its first check" });
  release(host);
  await waitFor(() => owner.cluster("c") !== first, { what: "the new version to serve" });
});

test("a host that comes later is asked once it has been checked", async (t) => {
  const [one, other] = [await startHost(t), await startHost(t, true)];
  const { cds, eds, warm, hosts, chosen } = stage(t);
  await cds({ common_lb_config: { ignore_new_hosts_until_first_hc: true } });
  eds(one);
  await waitFor(() => warm() > 0, { what: "the cluster to be warm" });
  eds(one, other);
  await waitFor(() => other.held.length === 1, { what: "its first check" });
  assert.deepEqual(hosts(), [at(one), `${at(other)} failed_active_hc pending_active_hc`]);
  assert.deepEqual(chosen(), [at(one)]);
  release(other);
  await waitFor(() => chosen().length === 2, { what: "the host to be used" });
});

test("a host that is well outlives its endpoint, until a check fails", async (t) => {
  const [one, other] = [await startHost(t), await startHost(t)];
  const { cds, eds, warm, hosts, owner } = stage(t);
  await cds();
  eds(one, other);
  await waitFor(() => warm() > 0, { what: "the cluster to be warm" });
  const kept = owner.cluster("c")!.hosts[1]!;
  eds(one);
  assert.deepEqual(hosts(), [at(one), `${at(other)} pending_dynamic_removal`]);
  eds(one, other);
  assert.deepEqual(hosts(), [at(one), at(other)]);
  assert.equal(owner.cluster("c")!.hosts[1], kept);
  eds(one);
  other.status = 503;
  await waitFor(() => hosts().length === 1, { what: "the host to go" });
  assert.deepEqual([hosts(), kept.active], [[at(one)], false]);
});

test("unless it goes at once, as ignore_health_on_host_removal wants it", async (t) => {
  const [one, other] = [await startHost(t), await startHost(t)];
  const { cds, eds, warm, hosts } = stage(t);
  await cds({ ignore_health_on_host_removal: true });
  eds(one, other);
  await waitFor(() => warm() > 0, { what: "the cluster to be warm" });
  eds(one);
  assert.deepEqual(hosts(), [at(one)]);
});
