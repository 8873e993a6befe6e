// Each node of a cluster is drained under load, as people do it before they take a machine away. No request fails.
import { test } from "node:test";
import { nodes } from "../tools/cluster/addresses.ts";
import { applyObjects, kubectl } from "../tools/cluster/kubectl.ts";
import { allAvailable, gateway, ReplicatedShop, replicated, rolledOut } from "./replicated-shop.ts";

/**
 * Who does not answer a probe within a second, as no pod does while two cores start a dozen others, is not ready by
 * Kubernetes' default, and gets nothing: that is no matter of drains.
 */
const patient = { op: "add", path: "/spec/template/spec/containers/0/readinessProbe/timeoutSeconds", value: 20 };

const shop = new ReplicatedShop(async () => {
  const names = replicated.map((each) => each.slice("shop/".length));
  for (const name of names)
    await kubectl(["patch", "-n", "shop", `deployment/${name}`, "--type=json", "-p", JSON.stringify([patient])]);
  await applyObjects([...replicated, gateway].map(budgetOf));
  await rolledOut("shop", ...names);
});

/** Of who drains nodes: none is without somebody who answers. The control plane's comes with its chart. */
function budgetOf(deployment: string): object {
  const [namespace, name = ""] = deployment.split("/");
  const [app, version] = name.split("-v");
  const matchLabels = { app, ...(version === undefined ? {} : { version: `v${version}` }) };
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name, namespace },
    spec: { maxUnavailable: 1, selector: { matchLabels } },
  };
}

/** It is back afterwards. */
async function drain(name: string): Promise<void> {
  const args = ["drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=180s"];
  try {
    await kubectl(args, 200_000);
    await allAvailable();
  } finally {
    await kubectl(["uncordon", name]);
  }
}

for (const { name } of nodes)
  test(`no request fails while ${name} is drained`, (t) => shop.assertNoneFails(t, () => drain(name)));
