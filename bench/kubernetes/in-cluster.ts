// Runs beside a cluster that it finds by KUBECONFIG: measures one thing after the other, and writes the figures to a
// file. Arguments: the file, how many pods of each kind are started.
import { writeFile } from "node:fs/promises";
import { customResourceDefinitions } from "@tulle/kubernetes";
import { applyObjects, kubectl } from "../../tests/tools/cluster/kubectl.ts";
import { measureLargeCluster } from "./large-cluster.ts";
import type { Figure } from "./measure-kubernetes.ts";
import { measureReadiness } from "./readiness.ts";

const [file = "", rounds = "5"] = process.argv.slice(2);

await applyObjects([
  ...customResourceDefinitions(),
  { apiVersion: "v1", kind: "Namespace", metadata: { name: "tulle-system" } },
]);
await kubectl(["wait", "crd", "-l", "app.kubernetes.io/part-of=tulle", "--for=condition=Established"]);
// First on idle nodes, then with thousands of objects.
const figures: readonly Figure[] = [...(await measureReadiness(Number(rounds))), ...(await measureLargeCluster())];
await writeFile(file, JSON.stringify(figures));
