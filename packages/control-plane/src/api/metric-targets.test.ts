// Which pods Prometheus is told of, at which ports and pages.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText, MemoryStore } from "@tulle/config";
import { metricTargets } from "./metric-targets.ts";

interface Case {
  readonly name: string;
  /** Of the namespace. */
  readonly injects?: boolean;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly address?: string;
  readonly expected: readonly string[];
}

const scraped = { "prometheus.io/scrape": "true", "prometheus.io/port": "9100" };

const cases: readonly Case[] = [
  { name: "a pod with a sidecar, by its agent", expected: ["http://127.9.9.3:15020/stats/prometheus"] },
  {
    name: "a pod whose application has metrics, by its agent alone",
    annotations: scraped,
    expected: ["http://127.9.9.3:15020/stats/prometheus"],
  },
  {
    name: "a pod whose application's metrics are not to be merged, by both",
    annotations: { ...scraped, "prometheus.istio.io/merge-metrics": "false" },
    expected: ["http://127.9.9.3:15020/stats/prometheus", "http://127.9.9.3:9100/metrics"],
  },
  { name: "a pod without sidecar and annotations, not at all", injects: false, expected: [] },
  {
    name: "a pod without sidecar, by its annotations",
    injects: false,
    annotations: { ...scraped, "prometheus.io/path": "/m", "prometheus.io/scheme": "https" },
    expected: ["https://127.9.9.3:9100/m"],
  },
  {
    name: "a pod without sidecar that names no port, at its first one",
    injects: false,
    annotations: { "prometheus.io/scrape": "true" },
    expected: ["http://127.9.9.3:3000/metrics"],
  },
  {
    name: "a pod that is not to be scraped",
    injects: false,
    annotations: { ...scraped, "prometheus.io/scrape": "false" },
    expected: [],
  },
  {
    name: "a gateway",
    injects: false,
    annotations: { "inject.istio.io/templates": "gateway", "sidecar.istio.io/inject": "true" },
    expected: [],
  },
  { name: "a pod without an address", address: "", expected: [] },
];

for (const { name, injects = true, annotations = {}, address = "127.9.9.3", expected } of cases) {
  test(`targets of Prometheus: ${name}`, async () => {
    const namespace = {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: "shop", labels: { "istio-injection": injects ? "enabled" : "disabled" } },
    };
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web-1", namespace: "shop", labels: { app: "web", version: "v2" }, annotations },
      spec: { containers: [{ name: "app", ports: [{ containerPort: 3000 }] }] },
      status: { phase: "Running", ...(address === "" ? {} : { podIP: address }) },
    };
    const store = new MemoryStore();
    const { resources, findings } = loadText([namespace, pod].map((each) => JSON.stringify(each)).join("\n---\n"), "a");
    assert.deepEqual(findings, []);
    await store.applyAll(resources);
    const found = metricTargets(store);
    assert.deepEqual(
      found.map(({ targets, labels }) => `${labels["__scheme__"]}://${targets[0]}${labels["__metrics_path__"]}`),
      expected,
    );
    for (const { labels } of found) {
      const { namespace: ofNamespace, pod: ofPod, app, version } = labels;
      assert.deepEqual([ofNamespace, ofPod, app, version], ["shop", "web-1", "web", "v2"]);
    }
  });
}
