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
/** In the order in which they take turns. */
const kinds = [
  { name: "a pod without a sidecar", labels: { "sidecar.tulle.io/inject": "false" } },
  { name: "a pod with a native sidecar", labels: {} },
  {
    name: "a pod with a plain sidecar that holds it back",
    labels: {},
    annotations: {
      "sidecar.istio.io/nativeSidecar": "false",
      "proxy.istio.io/config": "holdApplicationUntilProxyStarts: true",
    },
  },
] as const;
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
  const timeOf = async (name: string, kind: (typeof kinds)[number]): Promise<number> => {
    const pod = mesh.pod(name, { node: nodes[1].name, program, container, ...kind });
    const began = performance.now();
    await applyObjects([pod]);
    await kubectl(["wait", "-n", namespace, `pod/${name}`, "--for=condition=Ready", "--timeout=90s"]);
    const seconds = (performance.now() - began) / 1000;
    await kubectl(["delete", "pod", "-n", namespace, name, "--grace-period=1"]);
    return seconds;
  };
  const rows: number[][] = [];
  // The first round unpacks images and fills caches.
  for (let round = 0; round <= rounds; round++) {
    const row: number[] = [];
    for (const [index, kind] of kinds.entries()) row.push(await timeOf(`pod-${round}-${index}`, kind));
    process.stderr.write(`pods of round ${round}: ${row.map((seconds) => `${seconds.toFixed(2)} s`).join(", ")}\n`);
    rows.push(row);
  }
  const warm = rows.slice(1);
  const figures = kinds.map(({ name }, index): Figure => {
    return { name: `${name} until Ready`, value: median(warm.map((row) => row[index]!)), unit: "s" };
  });
  const added = median(warm.map(([plain = 0, injected = 0]) => injected - plain));
  return [...figures, { name: "what the native sidecar adds", value: added, unit: "s", aim: 1.5 }];
}
