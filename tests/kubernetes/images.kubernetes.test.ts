// Tulle's own images in a cluster: they start without a shell and on a read-only root, as the users that they say, and
// the shop's programs answer as they do on a laptop.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { applyObjects, deleteNamespace, kubectl } from "../tools/cluster/kubectl.ts";

const namespace = "images";
/** The version of this clone. */
const tag = "0.1.0";

before(() => applyObjects([{ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } }]));
after(() => deleteNamespace(namespace));

const securityContext = {
  readOnlyRootFilesystem: true,
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  capabilities: { drop: ["ALL"] },
  seccompProfile: { type: "RuntimeDefault" },
};

function pod(name: string, image: string, more: object = {}): object {
  const container = { name: "main", image: `${image}:${tag}`, securityContext, ...more };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels: { app: name } },
    spec: { restartPolicy: "Never", containers: [container] },
  };
}

const service = (name: string, port: number): object => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, namespace },
  spec: { selector: { app: name }, ports: [{ name: "http", port: 80, targetPort: port }] },
});

const firstWords: readonly { readonly name: string; readonly image: string; readonly says: RegExp }[] = [
  { name: "tulled", image: "tulle/tulled", says: /^Usage: tulle control-plane/m },
  { name: "proxy", image: "tulle/proxy", says: /^Usage: tulle agent/m },
  { name: "proxy-envoy", image: "tulle/proxy-envoy", says: /^Usage: tulle agent/m },
  { name: "authorization-server", image: "tulle/authorization-server", says: /TULLE_AUTH_ISSUER/ },
];

for (const { name, image, says } of firstWords) {
  test(`${image} starts, and tells its options`, async () => {
    await applyObjects([pod(name, image, { args: ["--help"] })]);
    await kubectl([
      "wait",
      "-n",
      namespace,
      `pod/${name}`,
      "--for=jsonpath={.status.phase}=Succeeded",
      "--timeout=90s",
    ]);
    assert.match(await kubectl(["logs", "-n", namespace, name]), says);
  });
}

test("the shop's images answer over both nodes by their Services' names", async () => {
  const spread = (name: string, node: string): object => {
    const made = pod(name, `tulle/shop-${name}`) as { spec: object };
    return { ...made, spec: { ...made.spec, nodeName: node } };
  };
  await applyObjects([
    service("catalog", 3000),
    service("webapp", 8080),
    spread("catalog", "node2"),
    spread("webapp", "node1"),
  ]);
  await kubectl(["wait", "-n", namespace, "pod/catalog", "pod/webapp", "--for=condition=Ready", "--timeout=90s"]);
  const get = ["get", "--raw", `/api/v1/namespaces/${namespace}/services/webapp:80/proxy/api/catalog`];
  const answer = await waitFor(() => kubectl(get), { what: "the webapp to answer" });
  assert.ok((JSON.parse(answer) as readonly unknown[]).length > 0, answer);
});
