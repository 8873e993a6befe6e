// What an API server waits for: a pod is shown to the injector 50 times a second, as API servers show it, by
// connections that are kept.
import { Agent, request } from "undici";
import type { Tulled } from "../../tests/tools/cluster/tulled.ts";
import { readProcessUsage } from "../measure/process-usage.ts";
import { atRate } from "./at-rate.ts";
import type { Figure } from "./measure-kubernetes.ts";

const podsPerSecond = 50;
const seconds = 20;

export async function measureWebhook(tulled: Tulled, namespace: string): Promise<readonly Figure[]> {
  // Whose certificate it is matters to nobody here.
  const dispatcher = new Agent({ connections: 8, connect: { rejectUnauthorized: false } });
  const ask = async (number: number): Promise<void> => {
    const { statusCode, body } = await request(`https://${tulled.host}:${tulled.webhookPort}/inject`, {
      method: "POST",
      dispatcher,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(review(number, namespace)),
    });
    const { response } = (await body.json()) as { response?: { allowed?: boolean; patch?: string } };
    if (statusCode !== 200 || response?.patch === undefined) {
      throw new Error(`the webhook answered ${statusCode}: ${JSON.stringify(response)}`);
    }
  };
  await atRate(podsPerSecond, podsPerSecond * 2, ask);
  const before = await readProcessUsage(tulled.process.pid);
  const { medianMs, p99Ms } = await atRate(podsPerSecond, podsPerSecond * seconds, ask);
  const { cpuSeconds } = await readProcessUsage(tulled.process.pid);
  await dispatcher.close();
  const cpuMs = ((cpuSeconds - before.cpuSeconds) * 1000) / (podsPerSecond * seconds);
  return [
    { name: "webhook at 50 pods a second, median", value: medianMs, unit: "ms" },
    { name: "webhook at 50 pods a second, p99", value: p99Ms, unit: "ms", aim: 20 },
    { name: "CPU of the control plane for a pod", value: cpuMs, unit: "ms" },
  ];
}

function review(number: number, namespace: string): object {
  const probe = { httpGet: { path: "/healthz", port: 8080 } };
  return {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: `bench-${number}`,
      operation: "CREATE",
      namespace,
      name: "",
      object: {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { generateName: "web-", labels: { app: "web" }, annotations: { "prometheus.io/scrape": "true" } },
        spec: {
          containers: [
            {
              name: "main",
              image: "web:1",
              ports: [{ containerPort: 8080 }],
              readinessProbe: probe,
              livenessProbe: probe,
            },
          ],
        },
      },
    },
  };
}
