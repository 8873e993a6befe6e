// rollout as a person types it, against a real control plane; the pods are what somebody says that they are.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Pod } from "@tulle/config";
import { exitCodes } from "../../command/command-failure.ts";
import { connect } from "../../instance/instance-client.ts";
import { type Shell, startShell } from "../../testing/shell.ts";

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template: { metadata: { labels: { app: web } }, spec: { containers: [{ name: web }] } }
`;

function pod(name: string, ready: boolean, app = "web"): string {
  return `apiVersion: v1
kind: Pod
metadata: { name: ${name}, namespace: shop, labels: { app: ${app} } }
spec: { containers: [{ name: web }] }
status: { podIP: 127.0.0.9, conditions: [{ type: Ready, status: "${ready ? "True" : "False"}" }] }
`;
}

async function shopWith(t: TestContext, ...pods: readonly string[]): Promise<Shell> {
  const shell = await startShell(t);
  const applied = await shell.run("apply -f -", [deployment, ...pods].join("---\n"));
  assert.equal(applied.exitCode, 0, applied.stderr);
  return shell;
}

/** The wishes on each pod, by the last word of their names. */
async function wishes(shell: Shell): Promise<Readonly<Record<string, readonly string[]>>> {
  const { items } = await connect(shell.instance!).list("Pod");
  const of = ({ metadata }: Pod): readonly string[] =>
    Object.keys(metadata.annotations ?? {}).map((name) => name.split("/")[1]!);
  return Object.fromEntries(items.map((each) => [each.metadata.name, of(each)]));
}

const restarts = [
  { name: "whole pods", line: "restart deployment web -n shop", expected: ["restarted-at"] },
  { name: "kubectl's other spelling", line: "restart deploy/web -n shop", expected: ["restarted-at"] },
  { name: "a name alone", line: "restart web -n shop", expected: ["restarted-at"] },
  { name: "a name alone, whatever its namespace", line: "restart web", expected: ["restarted-at"] },
  { name: "a name with its namespace", line: "restart web.shop", expected: ["restarted-at"] },
  { name: "a kind and a name with its namespace", line: "restart deploy/web.shop", expected: ["restarted-at"] },
  { name: "a kind before a name in a further word", line: "restart deployment deploy/web", expected: ["restarted-at"] },
  { name: "proxies", line: "restart deployment/web -n shop -c proxy", expected: ["proxy-restarted-at"] },
  {
    name: "proxies by Istio's name",
    line: "restart deployment/web -n shop -c istio-proxy",
    expected: ["proxy-restarted-at"],
  },
];

for (const { name, line, expected } of restarts) {
  test(`restart: ${name}`, async (t) => {
    const shell = await shopWith(t, pod("web-1", true), pod("web-2", true), pod("other-1", true, "other"));
    const ran = await shell.run(`rollout ${line}`);
    assert.equal(ran.exitCode, 0, ran.stderr);
    assert.match(ran.stdout, /^deployment\/web restart/);
    assert.deepEqual(await wishes(shell), { "web-1": expected, "web-2": expected, "other-1": [] });
  });
}

const refusals = [
  {
    line: "restart deployment/nobody -n shop",
    status: 1,
    expected: /there is no Deployment nobody in the namespace shop\n.*Deployments:\n  web\.shop$/m,
  },
  { line: "restart web -n other", status: 1, expected: /There is one in shop: -n shop/ },
  { line: "restart web.other", status: 1, expected: /there is no Deployment web\.other\n/ },
  { line: "restart service/web -n shop", status: exitCodes.usage, expected: /name one or more Deployments/ },
  { line: "restart service web -n shop", status: exitCodes.usage, expected: /name one or more Deployments/ },
  { line: "restart deployment/ -n shop", status: exitCodes.usage, expected: /name one or more Deployments/ },
  { line: "restart deployment", status: exitCodes.usage, expected: /name one or more Deployments/ },
  { line: "restart deployment/web -n shop -c web", status: exitCodes.usage, expected: /only the proxy can/ },
];

for (const { line, status, expected } of refusals) {
  test(`refused: ${line}`, async (t) => {
    const shell = await shopWith(t);
    const ran = await shell.run(`rollout ${line}`);
    assert.equal(ran.exitCode, status);
    assert.match(ran.stderr, expected);
  });
}

test("refused: a name that two namespaces have, and neither is restarted", async (t) => {
  const shell = await shopWith(t, deployment.replace("namespace: shop", "namespace: other"), pod("web-1", true));
  const ran = await shell.run("rollout restart web");
  assert.equal(ran.exitCode, 1);
  assert.match(ran.stderr, /there is more than one Deployment web\n[^]*  web\.other\n  web\.shop\n/);
  assert.deepEqual(await wishes(shell), { "web-1": [] });
});

const states = [
  {
    name: "all there",
    pods: [pod("web-1", true), pod("web-2", true)],
    status: 0,
    expected: /^deployment\/web rolled out\n$/,
  },
  {
    name: "one not ready",
    pods: [pod("web-1", true), pod("web-2", false)],
    status: 1,
    expected: /1 of 2 pods are ready/,
  },
  {
    name: "an old one",
    pods: [pod("web-1", true), pod("web-2", true), pod("web-0", false)],
    status: 1,
    expected: /1 old pods are leaving/,
  },
];

for (const { name, pods, status, expected } of states) {
  test(`status: ${name}`, async (t) => {
    const shell = await shopWith(t, ...pods);
    const ran = await shell.run("rollout status deployment/web -n shop --timeout 1");
    assert.equal(ran.exitCode, status);
    assert.match(ran.stdout, expected);
  });
}

test("status: pods that are yet to be restarted", async (t) => {
  const shell = await shopWith(t, pod("web-1", true), pod("web-2", true));
  await shell.run("rollout restart deployment/web -n shop");
  const ran = await shell.run("rollout status deployment/web -n shop --timeout 1");
  assert.equal(ran.exitCode, 1);
  assert.match(ran.stderr, /not rolled out after 1 s: 2 of 2 pods are yet to be restarted/);
});
