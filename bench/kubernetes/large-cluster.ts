// A control plane in a cluster of 1,000 Services and 2,000 Pods: how soon it serves, what it holds, what 200 changes of
// endpoints a second cost it while a workload follows them all, and how long its webhook takes for a pod.
import { kubeconfigAccess, KubernetesClient } from "@tulle/kubernetes";
import { systemClock } from "@tulle/timing";
import { deleteNamespace } from "../../tests/tools/cluster/kubectl.ts";
import { startTulled, type Tulled } from "../../tests/tools/cluster/tulled.ts";
import { waitFor } from "../../tests/tools/processes.ts";
import { readProcessUsage } from "../measure/process-usage.ts";
import { FollowingWorkload } from "./following-workload.ts";
import type { Figure } from "./measure-kubernetes.ts";
import { atRate } from "./at-rate.ts";
import { measureWebhook } from "./webhook.ts";

const namespace = "bench-large";
const services = 1_000;
const podsOfService = 2;
const changesPerSecond = 200;
const changeSeconds = 20;

export async function measureLargeCluster(): Promise<readonly Figure[]> {
  const access = await kubeconfigAccess({ environment: process.env, clock: systemClock });
  const client = new KubernetesClient(access!, "tulle-bench");
  await using end = new AsyncDisposableStack();
  end.defer(() => client.close());
  end.defer(() => deleteNamespace(namespace));
  await writeObjects(client);
  const later = { after: (act: () => Promise<unknown>) => end.defer(async () => void (await act())) };
  // A root is made at the first start alone.
  await (await startTulled(later, { name: "first" })).process.stop();
  const began = performance.now();
  const tulled = await startTulled(later, { name: "tulled" });
  await webhookIsReady(tulled);
  const served = (performance.now() - began) / 1000;
  const workload = await FollowingWorkload.start(tulled, { namespace, pod: podName(0, 0), account: "default" });
  end.defer(async () => workload.close());
  await waitFor(() => workload.knows(services), { what: "a workload to know all Services", timeoutMs: 60_000 });
  const followed = (performance.now() - began) / 1000;
  const { residentBytes } = await readProcessUsage(tulled.process.pid);
  const changes = await measureChanges(client, tulled, workload);
  const { residentBytes: afterwards } = await readProcessUsage(tulled.process.pid);
  return [
    { name: "1,000 Services, 2,000 Pods: served after start", value: served, unit: "s", aim: 5 },
    { name: "the same, until a new workload has all clusters and endpoints", value: followed, unit: "s" },
    { name: "resident memory then", value: residentBytes / 1e6, unit: "MB", aim: 500 },
    ...changes,
    { name: "resident memory afterwards", value: afterwards / 1e6, unit: "MB", aim: 500 },
    ...(await measureWebhook(tulled, namespace)),
  ];
}

/** Rates are of when a change is to be made, not of when the one before was answered. */
async function measureChanges(
  client: KubernetesClient,
  tulled: Tulled,
  workload: FollowingWorkload,
): Promise<readonly Figure[]> {
  const before = await readProcessUsage(tulled.process.pid);
  const began = performance.now();
  const address = (change: number): string => `10.${100 + (change >> 16)}.${(change >> 8) & 255}.${change & 255}`;
  const count = changesPerSecond * changeSeconds;
  const late = await atRate(changesPerSecond, count, async (change) => {
    await client.request({
      method: "PATCH",
      path: `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices/service-${change % services}-a`,
      contentType: "application/merge-patch+json",
      body: { endpoints: [endpoint(address(change))] },
    });
  });
  const seconds = (performance.now() - began) / 1000;
  const { cpuSeconds } = await readProcessUsage(tulled.process.pid);
  await waitFor(() => workload.has(address(count - 1)), { what: "the last change", timeoutMs: 60_000 });
  const behind = (performance.now() - began) / 1000 - seconds;
  return [
    { name: "changes of endpoints written", value: count / seconds, unit: "a second" },
    {
      name: "CPU of the control plane meanwhile",
      value: (cpuSeconds - before.cpuSeconds) / seconds,
      unit: "cores",
      aim: 1,
    },
    { name: "until the workload has the last one", value: behind, unit: "s" },
    { name: "p99 of a change's answer by the API server", value: late.p99Ms, unit: "ms" },
  ];
}

const podName = (service: number, pod: number): string => `pod-${service}-${pod}`;
const podAddress = (service: number, pod: number): string => `10.${10 + pod}.${service >> 8}.${service & 255}`;
const endpoint = (address: string, target?: string): object => ({
  addresses: [address],
  conditions: { ready: true },
  ...(target === undefined ? {} : { targetRef: { kind: "Pod", namespace, name: target } }),
});

async function writeObjects(client: KubernetesClient): Promise<void> {
  await client.request({
    method: "POST",
    path: "/api/v1/namespaces",
    body: { metadata: { name: namespace, labels: { "tulle-injection": "enabled" } } },
  });
  const account = `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
  await waitFor(() => client.request({ path: account }).catch(() => undefined), { what: "the account of pods" });
  const numbers = Array.from({ length: services }, (_, number) => number);
  const post = (path: string, body: object): Promise<unknown> => client.request({ method: "POST", path, body });
  await inTurns(numbers, async (number) => {
    const labels = { app: `service-${number}` };
    await post(`/api/v1/namespaces/${namespace}/services`, {
      metadata: { name: `service-${number}` },
      spec: { ports: [{ name: "http", port: 80, targetPort: 8080 }] },
    });
    const endpoints: object[] = [];
    for (let pod = 0; pod < podsOfService; pod++) {
      const name = podName(number, pod);
      const ip = podAddress(number, pod);
      endpoints.push(endpoint(ip, name));
      // No scheduler takes it, so that no kubelet starts it.
      const spec = { schedulerName: "none", containers: [{ name: "main", image: "localhost/pause:1" }] };
      await post(`/api/v1/namespaces/${namespace}/pods`, { metadata: { name, labels }, spec });
      await client.request({
        method: "PATCH",
        path: `/api/v1/namespaces/${namespace}/pods/${name}/status`,
        contentType: "application/merge-patch+json",
        body: { status: { phase: "Running", podIP: ip, podIPs: [{ ip }] } },
      });
    }
    await post(`/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, {
      metadata: { name: `service-${number}-a`, labels: { "kubernetes.io/service-name": `service-${number}` } },
      addressType: "IPv4",
      ports: [{ name: "http", port: 8080 }],
      endpoints,
    });
  });
}

/** Sixteen at a time. */
async function inTurns<T>(all: readonly T[], act: (each: T) => Promise<void>): Promise<void> {
  const left = all.values();
  const one = async (): Promise<void> => {
    for (const each of left) await act(each);
  };
  await Promise.all(Array.from({ length: 16 }, one));
}

async function webhookIsReady({ process: started, webhookPort }: Tulled): Promise<void> {
  const { Agent, request } = await import("undici");
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  const url = `https://127.0.0.1:${webhookPort}/ready`;
  await waitFor(
    () =>
      request(url, { dispatcher }).then(
        ({ statusCode }) => statusCode === 200,
        () => false,
      ),
    { what: "the control plane to serve", details: () => started.output() },
  );
  await dispatcher.close();
}
