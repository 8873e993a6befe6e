// What a sidecar adds to the time from a pod's making to its readiness, on a node with nothing else to do. Pods of both
// kinds take turns, one at a time: the machine does the same beside both.
import { defaultValues } from "@tulle/kubernetes";
import { outside, nodes } from "../../tests/tools/cluster/addresses.ts";
import { applyObjects, deleteNamespace, kubectl } from "../../tests/tools/cluster/kubectl.ts";
import { Mesh } from "../../tests/tools/cluster/mesh-pods.ts";
import { startTulled } from "../../tests/tools/cluster/tulled.ts";
import { median } from "../measure/median.ts";
import type { Figure } from "./measure-kubernetes.ts";

const namespace = "bench-readiness";
const xdsAddress = `${outside[0]}:15012`;
const program = `require("node:http").createServer((_, answer) => answer.end()).listen(8080)`;
const container = { readinessProbe: { httpGet: { path: "/", port: 8080 }, periodSeconds: 1 } };

export async function measureReadiness(rounds: number): Promise<readonly Figure[]> {
  const mesh = new Mesh(namespace, { ...defaultValues("0.1.0"), controlPlaneAddress: xdsAddress });
  await applyObjects([
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels: { "tulle-injection": "enabled" } } },
  ]);
  await using end = new AsyncDisposableStack();
  end.defer(() => deleteNamespace(namespace));
  const later = { after: (act: () => Promise<unknown>) => end.defer(async () => void (await act())) };
  await startTulled(later, { name: "tulled", args: ["--xds-tls", xdsAddress] });
  const timeOf = async (name: string, labels: Readonly<Record<string, string>>): Promise<number> => {
    const pod = mesh.pod(name, { node: nodes[1].name, program, container, labels });
    const began = performance.now();
    await applyObjects([pod]);
    await kubectl(["wait", "-n", namespace, `pod/${name}`, "--for=condition=Ready", "--timeout=90s"]);
    const seconds = (performance.now() - began) / 1000;
    await kubectl(["delete", "pod", "-n", namespace, name, "--grace-period=1"]);
    return seconds;
  };
  const plain: number[] = [];
  const injected: number[] = [];
  // The first ones unpack images and fill caches.
  for (let round = 0; round <= rounds; round++) {
    plain.push(await timeOf(`plain-${round}`, { "sidecar.tulle.io/inject": "false" }));
    injected.push(await timeOf(`injected-${round}`, {}));
    process.stderr.write(`pod ${round}: ${plain.at(-1)!.toFixed(2)} s, injected ${injected.at(-1)!.toFixed(2)} s\n`);
  }
  const ofWarm = (seconds: readonly number[]): number => median(seconds.slice(1));
  const added = median(injected.slice(1).map((seconds, round) => seconds - plain[round + 1]!));
  return [
    { name: "a pod without a sidecar until Ready", value: ofWarm(plain), unit: "s" },
    { name: "a pod with a sidecar until Ready", value: ofWarm(injected), unit: "s" },
    { name: "what the sidecar adds", value: added, unit: "s", aim: 1.5 },
  ];
}
