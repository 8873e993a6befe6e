// The CNI plug-in on both nodes: pods of a namespace of the Pod Security level `restricted` are captured, without a
// capability of their own; without its program none starts; what slipped through is made anew; it leaves as it came.
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { customResourceDefinitions, defaultValues, evaluateInstallation } from "@tulle/kubernetes";
import { nodes, outside } from "../tools/cluster/addresses.ts";
import { applyObjects, deleteNamespace, kubectl } from "../tools/cluster/kubectl.ts";
import { Mesh } from "../tools/cluster/mesh-pods.ts";
import { startTulled } from "../tools/cluster/tulled.ts";
import { waitFor } from "../tools/processes.ts";

const namespace = "captured";
const root = "tulle-system";
const xdsAddress = `${outside[0]}:15012`;
const mesh = new Mesh(namespace, { ...defaultValues("0.1.0"), controlPlaneAddress: xdsAddress, cni: true });
const cleanUp = new AsyncDisposableStack();

/** The tests' nodes share their files: each has folders of its own. */
const folderOf = (node: string): string => path.join(path.dirname(process.env["KUBECONFIG"]!), "..", node);
const configurationOf = async (node: string): Promise<string> => {
  const folder = path.join(folderOf(node), "cni");
  const [first] = (await readdir(folder)).filter((name) => !name.startsWith(".")).sort();
  return readFile(path.join(folder, first!), "utf8");
};
const settings = nodes.map(({ name }) => ({
  enabled: true,
  name: `tulle-cni-${name}`,
  cniConfDir: path.join(folderOf(name), "cni"),
  cniBinDir: path.join(folderOf(name), "cni-bin"),
  socketDir: `/run/tulle-cni-${name}`,
  nodeSelector: { "kubernetes.io/hostname": name },
}));
/** Of the chart. */
function cniObjects(cni: (typeof settings)[number]): readonly object[] {
  const { objects, problems } = evaluateInstallation(
    [{ base: { enabled: false }, tulled: { enabled: false }, cni }],
    root,
  );
  assert.deepEqual(problems, []);
  return objects;
}
const hasPlugin = (node: string): Promise<boolean> =>
  configurationOf(node).then(
    (text) => text.includes("tulle-cni"),
    () => false,
  );

const server = `
require("node:http").createServer((request, response) => {
  response.end(request.headers["x-forwarded-client-cert"] ?? "nobody");
}).listen(8080, "::");
process.on("SIGTERM", () => process.exit(0));
`;

before(async () => {
  await applyObjects([
    ...customResourceDefinitions(),
    { apiVersion: "v1", kind: "Namespace", metadata: { name: root } },
    {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: namespace, labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
    },
  ]);
  await kubectl(["wait", "crd", "-l", "app.kubernetes.io/part-of=tulle", "--for=condition=Established"]);
  await startTulled(
    { after: (end) => cleanUp.defer(async () => void (await end())) },
    { name: "tulled", args: ["--xds-tls", xdsAddress] },
  );
});
after(async () => {
  await cleanUp.disposeAsync();
  await deleteNamespace(namespace);
  for (const { name } of settings) {
    await kubectl(["delete", "clusterrole,clusterrolebinding", name, "--ignore-not-found"]);
  }
  await kubectl(["delete", "namespace", root]);
});

test("a pod that started before the plug-in waits, is evicted, and comes again captured", async () => {
  const labels = { app: "early" };
  const template = mesh.template("early", { node: nodes[0].name, program: server, labels });
  const spec = { replicas: 1, selector: { matchLabels: labels }, template };
  await applyObjects([{ apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { name: "early", namespace }, spec }]);
  const state = "{.items[*].status.initContainerStatuses[?(@.name=='tulle-validation')].restartCount}";
  await waitFor(async () => Number(await kubectl(["get", "pods", "-n", namespace, "-o", `jsonpath=${state}`])) > 0, {
    what: "the pod's check to fail",
  });
  await applyObjects(settings.flatMap(cniObjects));
  for (const { name } of nodes) await waitFor(() => hasPlugin(name), { what: `the plug-in on ${name}` });
  await kubectl(["wait", "-n", namespace, "rs/early", "--for=jsonpath={.status.readyReplicas}=1", "--timeout=90s"]);
});

test("pods under the level restricted call each other over mutual TLS, on both nodes", async () => {
  await applyObjects([
    mesh.strictMutualTls(),
    mesh.service("server", 80, 8080),
    mesh.pod("server", { node: nodes[1].name, program: server }),
    mesh.pod("client", { node: nodes[0].name, program: server }),
  ]);
  for (const name of ["server", "client"]) await mesh.ready(name);
  const addresses = (await mesh.fieldOf("service/server", "{.spec.clusterIPs[*]}")).split(" ");
  for (const host of ["server", ...addresses.map((each) => (each.includes(":") ? `[${each}]` : each))]) {
    const by = await mesh.fetchFrom("client", `http://${host}/`);
    assert.match(by, /URI=spiffe:\/\/cluster\.local\/ns\/captured\/sa\/default/, host);
  }
});

test("what another program writes is followed, and without ours no pod starts", async () => {
  const [{ name: node }] = nodes;
  const pods = ["get", "pods", "-n", root, "-l", `app=tulle-cni-${node}`, "-o", "name"];
  // Nobody is on this node any more, and the plug-in stays: as in an upgrade.
  const patch = JSON.stringify({ spec: { template: { spec: { nodeSelector: { nowhere: "yes" } } } } });
  await kubectl(["patch", "daemonset", "-n", root, `tulle-cni-${node}`, "-p", patch]);
  await waitFor(async () => (await kubectl(pods)) === "", { what: "the program to end" });
  assert.ok(await hasPlugin(node));
  await applyObjects([mesh.pod("late", { node, program: server })]);
  const events = [
    "get",
    "events",
    "-n",
    namespace,
    "--field-selector=involvedObject.name=late",
    "-o",
    "jsonpath={.items[*].message}",
  ];
  await waitFor(async () => /program that captures pods does not run on this node/.test(await kubectl(events)), {
    what: "the pod's events to say why",
  });
  await applyObjects(cniObjects(settings[0]!));
  await mesh.ready("late");
});

test("an uninstalled plug-in leaves the nodes as they were", async () => {
  for (const { name } of settings) await kubectl(["delete", "daemonset", "-n", root, name]);
  for (const { name } of nodes) {
    const programs = path.join(folderOf(name), "cni-bin");
    // The configuration first, so that no runtime asks for a program that is not there.
    const isGone = async (): Promise<boolean> =>
      !(await hasPlugin(name)) && !(await readdir(programs)).includes("tulle-cni");
    await waitFor(isGone, { what: `the plug-in to leave ${name}` });
    const list = JSON.parse(await configurationOf(name)) as { readonly plugins: readonly { readonly type: string }[] };
    assert.deepEqual(
      list.plugins.map(({ type }) => type),
      ["bridge", "loopback"],
    );
  }
});
