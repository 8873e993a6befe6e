// What runs in a pod decides whether it is captured, whatever its annotations pretend.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decideCapture, type SeenPod } from "./decide-capture.ts";

const main = { name: "main" };
const proxy = { name: "tulle-proxy", env: [{ name: "DNS_PROXY_ADDR", value: "localhost:15053" }] };
const check = { name: "tulle-validation" };
const status = { "sidecar.istio.io/status": "{}" };

interface Row {
  readonly name: string;
  readonly spec?: Partial<SeenPod["spec"]>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly expected: string;
}

const rows: readonly Row[] = [
  { name: "a native sidecar", spec: { initContainers: [check, proxy] }, expected: "capture all" },
  { name: "a plain one", spec: { containers: [proxy, main] }, expected: "capture all" },
  { name: "without DNS", spec: { containers: [{ name: "istio-proxy" }, main] }, expected: "capture none" },
  { name: "a check without a proxy yet", spec: { initContainers: [check] }, expected: "capture none" },
  { name: "a status alone", annotations: status, expected: "leave it has no proxy" },
  { name: "a pod like any other", expected: "leave it has no proxy" },
  {
    name: "inject: false on what has a proxy",
    spec: { containers: [proxy, main] },
    annotations: { "sidecar.istio.io/inject": "false" },
    expected: "capture all",
  },
  {
    name: "on the node's network",
    spec: { hostNetwork: true, containers: [proxy] },
    expected: "leave it uses its node's network",
  },
  {
    name: "captured by itself",
    spec: { initContainers: [{ name: "tulle-capture" }, proxy] },
    expected: "leave an init container of its own captures it",
  },
  {
    name: "a gateway",
    spec: { containers: [{ name: "istio-proxy", env: [{ name: "TULLE_PROXY_TYPE", value: "router" }] }] },
    expected: "leave its proxy is a gateway",
  },
  {
    name: "nothing to capture",
    spec: { containers: [proxy, main] },
    annotations: { "sidecar.istio.io/interceptionMode": "NONE" },
    expected: "leave its interceptionMode is NONE",
  },
  {
    name: "annotations that make no sense",
    spec: { containers: [proxy, main] },
    annotations: { "traffic.sidecar.istio.io/excludeOutboundPorts": "x; flush ruleset" },
    expected: "refuse traffic.sidecar.istio.io/excludeOutboundPorts",
  },
];

for (const { name, spec, annotations = {}, expected } of rows) {
  test(name, () => {
    const metadata = { name: "a", namespace: "b", uid: "c", annotations };
    const decision = decideCapture({ metadata, spec: { containers: [main], ...spec } });
    const said =
      decision.kind === "capture"
        ? JSON.stringify(decision.plan.dns?.servers ?? "none")
        : decision.kind === "leave"
          ? decision.reason
          : decision.problems.join().split(" ")[0];
    assert.equal(`${decision.kind} ${said?.replaceAll('"', "")}`, expected);
  });
}
