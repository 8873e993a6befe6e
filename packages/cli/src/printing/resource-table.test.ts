// Tables of `tulle get` as a terminal of some width gets them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResourceOf } from "@tulle/config";
import { resourceTable } from "./resource-table.ts";

const pod: ResourceOf<"Pod"> = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "catalog-v1-mf7qk2tb-xz4wd", namespace: "shop" },
  spec: { containers: [{ name: "app" }] },
  status: { phase: "Running", containerStatuses: [{ name: "app", ready: true, restartCount: 2 }] },
};
const options = { isWide: false, withNamespace: false };
const name = pod.metadata.name;

const cases: readonly { name: string; columns: number | undefined; expected: string }[] = [
  {
    name: "no terminal",
    columns: undefined,
    expected: `NAME${" ".repeat(24)}READY   STATUS    RESTARTS   AGE\n${name}   1/1     Running   2          <unknown>\n`,
  },
  {
    name: "80 columns",
    columns: 80,
    expected: `NAME${" ".repeat(24)}READY   STATUS    RESTARTS   AGE\n${name}   1/1     Running   2          <unknown>\n`,
  },
  {
    name: "64 columns",
    columns: 64,
    expected: `NAME${" ".repeat(23)}READY  STATUS   RESTARTS  AGE\n${name}  1/1    Running  2         <unknown>\n`,
  },
  {
    name: "40 columns",
    columns: 40,
    expected: `NAME\n  READY  STATUS   RESTARTS  AGE\n${name}\n  1/1    Running  2         <unknown>\n`,
  },
];

for (const { name: title, columns, expected } of cases) {
  test(`no line of a table is wider than the terminal: ${title}`, () => {
    assert.equal(resourceTable("Pod", [pod], { ...options, columns }), expected);
  });
}

test("wide, pods say where they are, as kubectl has it", () => {
  const placed = { ...pod, spec: { ...pod.spec, nodeName: "node-2" }, status: { ...pod.status, podIP: "10.244.2.2" } };
  const lines = resourceTable("Pod", [placed, pod], { isWide: true, withNamespace: true, columns: undefined }).split(
    "\n",
  );
  assert.match(lines[0]!, /^NAMESPACE +NAME +READY +STATUS +RESTARTS +AGE +IP +NODE$/);
  assert.match(lines[1]!, /<unknown> +10\.244\.2\.2 +node-2$/);
  assert.match(lines[2]!, /<unknown> +<none> +<none>$/);
});

test("wide, Services say their addresses and node ports", () => {
  const service = (app: string, spec: Partial<ResourceOf<"Service">["spec"]>): ResourceOf<"Service"> => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: app, namespace: "shop" },
    spec: { type: "NodePort", selector: { app }, ports: [{ port: 80, protocol: "TCP" }], ...spec },
  });
  const both = service("both", {
    clusterIP: "10.96.7.8",
    clusterIPs: ["10.96.7.8", "fd00:10:96::8"],
    ports: [{ port: 80, targetPort: 3000, nodePort: 30_080, protocol: "TCP" }],
  });
  const services = [both, service("one", { clusterIP: "10.96.7.9" }), service("loopback", {})];
  const lines = resourceTable("Service", services, { isWide: true, withNamespace: false, columns: undefined }).split(
    "\n",
  );
  assert.match(lines[0]!, /^NAME +TYPE +PORTS +CLUSTER-IP +NODE-PORTS +SELECTOR$/);
  assert.match(lines[1]!, /^both +NodePort +80:3000 +10\.96\.7\.8,fd00:10:96::8 +80:30080 +app=both$/);
  assert.match(lines[2]!, /^one +NodePort +80:80 +10\.96\.7\.9 +<none> +app=one$/);
  assert.match(lines[3]!, /^loopback +NodePort +80:80 +<none> +<none> +app=loopback$/);
});
