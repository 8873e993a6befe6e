// From a Deployment to programs: commands, problems, and what makes new pods necessary.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Deployment } from "@tulle/config";
import { planPods, podName } from "./pod-plan.ts";

function deployment(
  annotations: Record<string, string>,
  labels: Record<string, string> = {},
  replicas = 1,
): Deployment {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "shop" },
    spec: {
      replicas,
      selector: {},
      template: { metadata: { annotations, labels }, spec: { containers: [{ name: "app" }] } },
    },
  };
}

const settings = { proxy: "tulle", publishedPorts: [], hasEnvoy: false, mesh: {} } as const;
const command = (argv: unknown): Record<string, string> => ({ "local.tulle.io/command.app": JSON.stringify(argv) });

test("a command is an argv array", () => {
  const plan = planPods(deployment(command(["node", "a b.js"])), undefined, settings);
  assert.deepEqual(plan.problems, []);
  assert.deepEqual(plan.containers[0]!.argv, ["node", "a b.js"]);
});

const refused = [
  { name: "no command", annotations: {}, expected: /container "app" has no local command/ },
  {
    name: "command of another container",
    annotations: { "local.tulle.io/command.x": '["a"]' },
    expected: /no local command/,
  },
  { name: "a shell line", annotations: { "local.tulle.io/command.app": "node main.js" }, expected: /not a JSON array/ },
  { name: "an empty array", annotations: command([]), expected: /not a JSON array/ },
  { name: "a number in it", annotations: command(["node", 1]), expected: /not a JSON array/ },
  { name: "an empty program", annotations: command([""]), expected: /not a JSON array/ },
  {
    name: "an unknown proxy",
    annotations: { ...command(["node"]), "sidecar.tulle.io/proxy": "nginx" },
    expected: /sidecar\.tulle\.io\/proxy is "nginx"/,
  },
  {
    name: "memory that is no quantity",
    annotations: { ...command(["node"]), "sidecar.istio.io/proxyMemoryLimit": "much" },
    expected: /proxyMemoryLimit is "much"/,
  },
];
for (const { name, annotations, expected } of refused) {
  test(`${name} is a problem with a remedy`, () => {
    const { problems } = planPods(deployment(annotations), undefined, settings);
    assert.equal(problems.length, 1);
    assert.match(problems[0]!.message, expected);
    assert.notEqual(problems[0]!.suggestion, "");
  });
}

test("a limit of the proxy's memory is read from Istio's annotation", () => {
  const limited = deployment({ ...command(["node"]), "sidecar.istio.io/proxyMemoryLimit": "256Mi" });
  assert.equal(planPods(limited, undefined, settings).proxyMemoryBytes, 268_435_456);
  assert.equal(planPods(deployment(command(["node"])), undefined, settings).proxyMemoryBytes, undefined);
});

test("what the mesh says of its proxies' metrics is in the plan, and a pod's annotation beats it", () => {
  const scraped = { ...command(["node"]), "prometheus.io/scrape": "true", "prometheus.io/port": "9090" };
  const metadata = { OTEL_METRIC_EXPORT_INTERVAL: "5000" };
  const plan = (annotations: Record<string, string>, mesh: typeof settings.mesh | object) =>
    planPods(deployment(annotations, { "sidecar.istio.io/inject": "true" }), undefined, { ...settings, mesh });
  assert.deepEqual(plan(scraped, {}).proxyMetadata, {});
  assert.deepEqual(plan(scraped, { defaultConfig: { proxyMetadata: metadata } }).proxyMetadata, metadata);
  assert.equal(plan(scraped, {}).mergedMetrics?.port, "9090");
  assert.equal(plan(scraped, { enablePrometheusMerge: false }).mergedMetrics, undefined);
  const own = { ...scraped, "prometheus.istio.io/merge-metrics": "true" };
  assert.equal(plan(own, { enablePrometheusMerge: false }).mergedMetrics?.port, "9090");
});

test("Envoy has to be there where it is wanted, and only there", () => {
  const labels = { "sidecar.tulle.io/inject": "true" };
  const each = deployment({ ...command(["node"]), "sidecar.istio.io/proxy": "envoy" }, labels);
  assert.match(planPods(each, undefined, settings).problems[0]!.suggestion, /TULLE_ENVOY/);
  assert.deepEqual(planPods(each, undefined, { ...settings, hasEnvoy: true }).problems, []);
  assert.deepEqual(planPods(deployment(command(["node"])), undefined, { ...settings, proxy: "envoy" }).problems, []);
});

test("what has no effect here is remarked on", () => {
  const each = deployment(command(["node"]));
  const spec = {
    containers: [
      { name: "app", livenessProbe: { exec: { command: ["true"] } }, readinessProbe: { httpGet: { port: 80 } } },
    ],
    initContainers: [{ name: "prepare" }],
  };
  const { remarks, problems } = planPods(
    { ...each, spec: { ...each.spec, template: { ...each.spec.template, spec } } },
    undefined,
    settings,
  );
  assert.deepEqual(problems, []);
  assert.deepEqual(
    remarks.map(({ message }) => message),
    ['the init container "prepare" is not run here', 'the livenessProbe of container "app" is not asked here'],
  );
});

test("fields of a container that no process here is given are remarked on, and variables are planned in their order", () => {
  const each = deployment(command(["node"]));
  const app = {
    name: "app",
    workingDir: "/srv",
    env: [
      { name: "PASSWORD", valueFrom: { secretKeyRef: { name: "db", key: "password" } } },
      { name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
      { name: "EMPTY" },
    ],
    envFrom: [{ configMapRef: { name: "settings" } }],
    lifecycle: { preStop: { exec: { command: ["sleep", "5"] } } },
    volumeMounts: [{ name: "data", mountPath: "/data" }],
  };
  const template = { ...each.spec.template, spec: { containers: [app] } };
  const plan = planPods({ ...each, spec: { ...each.spec, paused: true, template } }, undefined, settings);
  assert.deepEqual(plan.containers[0]!.variables, [
    { prefix: "", from: { kind: "ConfigMap", name: "settings", optional: false } },
    { name: "PASSWORD", from: { kind: "Secret", name: "db", optional: false }, key: "password" },
    { name: "IP", fieldPath: "status.podIP" },
    { name: "EMPTY", value: "" },
  ]);
  assert.deepEqual(
    plan.remarks.map(({ message }) => message),
    [
      "paused has no effect here",
      'lifecycle of container "app" has no effect here',
      'workingDir of container "app" has no effect here',
    ],
  );
});

test("a gateway needs no command", () => {
  const labels = { "sidecar.tulle.io/inject": "true" };
  const plan = planPods(deployment({ "inject.tulle.io/templates": "gateway" }, labels), undefined, settings);
  assert.equal(plan.injection, "gateway");
  assert.deepEqual(plan.problems, []);
  assert.deepEqual(plan.containers, []);
});

test("only what changes a pod changes its hash", () => {
  const hash = (each: Deployment, ports: readonly string[] = []): string =>
    planPods(each, undefined, { ...settings, publishedPorts: ports }).templateHash;
  const first = hash(deployment(command(["a"])));
  assert.equal(hash(deployment(command(["a"]), {}, 5)), first);
  assert.notEqual(hash(deployment(command(["b"]))), first);
  assert.notEqual(hash(deployment(command(["a"]), { version: "v2" })), first);
  assert.notEqual(hash(deployment(command(["a"])), ["8080:8080"]), first);
});

test("pods are named after deployment, template and chance", () => {
  const plan = planPods(deployment(command(["a"])), undefined, settings);
  assert.match(podName(plan, new Uint8Array([1, 2, 3, 4, 250])), /^web-[a-z0-9]{8}-[a-z0-9]{5}$/);
});
