// Helm makes of the charts what `tulle manifest generate` prints, whatever the values; and it refuses what that
// refuses.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { evaluateInstallation } from "@tulle/kubernetes";
import { parseAllDocuments, stringify } from "yaml";
import { runCommand } from "../tools/run-command.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";

const charts = path.resolve(import.meta.dirname, "../../charts");
const folder = temporaryFolder("tulle-charts-");

interface ManifestObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

const everything = { gateway: { enabled: true }, cni: { enabled: true }, "authorization-server": { enabled: true } };
const odd = 'a"b\\c: {{ .Values.x }} # %s <&> é';

const valuesFiles: readonly { readonly name: string; readonly values: object; readonly namespace?: string }[] = [
  { name: "defaults", values: {} },
  { name: "every part", values: everything },
  { name: "another namespace", values: everything, namespace: "istio-system" },
  { name: "a revision", values: { tulled: { revision: "canary" }, gateway: { enabled: true, revision: "canary" } } },
  { name: "images of a registry", values: { global: { hub: "registry.example:5000/mesh", tag: "1.2.3-é" } } },
  { name: "secrets to fetch images", values: { global: { imagePullSecrets: [{ name: "one" }, { name: "two" }] } } },
  { name: "network policies", values: { ...everything, global: { networkPolicy: { enabled: true } } } },
  { name: "kinds that go with their chart", values: { base: { keepCustomResources: false } } },
  { name: "the namespace with the rest", values: { base: { createNamespace: true } } },
  {
    name: "a mesh configuration",
    values: {
      base: {
        meshConfig: {
          accessLogFile: "/dev/stdout",
          defaultConfig: { proxyMetadata: { Z: odd, A: "1" }, concurrency: 2 },
          extensionProviders: [{ name: "x", zipkin: { port: 9411, service: "<a&b>" } }, {}],
          rate: 0.25,
          none: [],
        },
      },
    },
  },
  {
    name: "capture by the nodes",
    values: {
      global: { cni: { enabled: true } },
      cni: {
        enabled: true,
        name: "x-cni",
        cniBinDir: "/a b",
        excludeNamespaces: "a,b",
        nodeSelector: { "example.com/x": "z" },
      },
    },
  },
  { name: "no injection", values: { tulled: { sidecarInjectorWebhook: { enabled: false } } } },
  { name: "beside Istio", values: { tulled: { sidecarInjectorWebhook: { istioLabels: false } } } },
  {
    name: "beside Istio, as a revision",
    values: { tulled: { revision: "r1", sidecarInjectorWebhook: { istioLabels: false, failurePolicy: "Ignore" } } },
  },
  {
    name: "Istio's groups",
    values: { base: { istioCustomResources: true }, tulled: { watchIstioResources: true } },
  },
  {
    name: "Istio's groups, unchecked",
    values: { tulled: { watchIstioResources: true, validationWebhook: { enabled: false } } },
  },
  {
    name: "what pods are injected with",
    values: {
      global: {
        cni: { enabled: true },
        trustDomain: "example.org",
        proxy: { kind: "envoy", resources: { limits: { cpu: "1" } }, includeIPRanges: "10.0.0.0/8" },
      },
      tulled: {
        sidecarInjectorWebhook: { templates: { mine: "spec:\n  a: b\n" }, defaultTemplates: ["sidecar", "mine"] },
      },
    },
  },
  {
    name: "where pods run",
    values: {
      tulled: {
        nodeSelector: { "kubernetes.io/os": "linux" },
        tolerations: [{ key: "a", operator: "Exists", effect: "NoSchedule" }],
        affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } },
        podAnnotations: { odd, "example.com/number": "7" },
        replicaCount: 0,
      },
    },
  },
  {
    name: "resources instead of the defaults",
    values: { tulled: { resources: { requests: null, limits: { cpu: "2" } } } },
  },
  {
    name: "resources beside the defaults",
    values: { tulled: { resources: { requests: { cpu: "1" }, limits: { memory: "1Gi" } } } },
  },
  {
    name: "a gateway that grows",
    values: {
      gateway: {
        enabled: true,
        autoscaling: { enabled: true, maxReplicas: 100_000_000 },
        service: { type: "NodePort" },
      },
    },
  },
  {
    name: "a gateway within",
    values: {
      gateway: {
        enabled: true,
        name: "inside",
        labels: { istio: null, tulle: "inside", app: "never", "sidecar.tulle.io/inject": "never" },
        service: { type: "ClusterIP", ports: [{ name: "tcp", port: 9000, targetPort: 9000 }], annotations: { odd } },
        podAnnotations: { "inject.istio.io/templates": "never", more: "1" },
      },
    },
  },
  {
    name: "a gateway that keeps addresses",
    values: { tulled: { enabled: false }, gateway: { enabled: true, service: { externalTrafficPolicy: "Local" } } },
  },
  {
    name: "an authorization server with a database of its own",
    values: {
      "authorization-server": {
        enabled: true,
        issuer: "https://login.example",
        secret: "database",
        replicaCount: 3,
        config: { name: odd, scopes: { "orders.read": "See your orders" } },
      },
    },
  },
  {
    name: "an authorization server on a volume",
    values: { "authorization-server": { enabled: true, persistence: { enabled: true, size: "5Gi" } } },
  },
];

async function helm(
  args: readonly string[],
  file: string,
): Promise<{ readonly code: number | null; readonly text: string }> {
  const { code, stdout, stderr } = await runCommand(
    "helm",
    ["template", "r", "--kube-version=1.34.0", ...args, "-f", file],
    { timeoutMs: 120_000 },
  );
  return { code, text: code === 0 ? stdout : stderr };
}

function written(name: string, values: object): string {
  const file = path.join(folder, `${name.replaceAll(/\W+/g, "-")}.yaml`);
  writeFileSync(file, stringify(values));
  return file;
}

/** By kind and name: Helm has an order of its own. */
function byName(objects: readonly unknown[]): ReadonlyMap<string, unknown> {
  const named = (objects as readonly ManifestObject[]).map(
    (each) => [`${each.kind} ${each.metadata.name}`, each] as const,
  );
  return new Map(named.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

for (const { name, values, namespace = "tulle-system" } of valuesFiles) {
  test(`helm template equals manifest generate: ${name}`, async () => {
    const { objects, problems } = evaluateInstallation([values as Record<string, unknown>], namespace);
    assert.deepEqual(problems, []);
    const { code, text } = await helm([path.join(charts, "tulle"), "-n", namespace], written(name, values));
    assert.equal(code, 0, text);
    const made = parseAllDocuments(text).flatMap((document) => (document.toJS() as unknown) ?? []);
    assert.deepEqual(byName(made), byName(objects));
  });
}

test("a part's own chart makes the same of the same values", async () => {
  const own = { name: "inside", service: { type: "ClusterIP" } };
  const values = { base: { enabled: false }, tulled: { enabled: false }, gateway: { enabled: true, ...own } };
  const { objects } = evaluateInstallation([values], "shop");
  const { code, text } = await helm([path.join(charts, "gateway"), "-n", "shop"], written("own", own));
  assert.equal(code, 0, text);
  assert.deepEqual(byName(parseAllDocuments(text).map((document) => document.toJS() as unknown)), byName(objects));
});

const refused: readonly {
  readonly name: string;
  readonly values: object;
  readonly says: RegExp;
  readonly helm: RegExp;
}[] = [
  {
    name: "a value that is not there",
    values: { tulled: { replicas: 2 } },
    says: /^tulled\.replicas: there is no such value/,
    helm: /replicas/,
  },
  {
    name: "a part that is not there",
    values: { gatway: { enabled: true } },
    says: /^gatway: there is no such value; did you mean gateway\?/,
    helm: /gatway/,
  },
  {
    name: "a number for a text",
    values: { global: { tag: 1.5 } },
    says: /^global\.tag: it must be a text, and not 1\.5/,
    helm: /tag/,
  },
  {
    name: "a word that is none of the choices",
    values: { tulled: { validationWebhook: { failurePolicy: "Pass" } } },
    says: /^tulled\.validationWebhook\.failurePolicy: it must be one of Fail, Ignore/,
    helm: /failurePolicy/,
  },
];

for (const { name, values, says, helm: helmSays } of refused) {
  test(`both refuse ${name}`, async () => {
    const { problems } = evaluateInstallation([values as Record<string, unknown>], "tulle-system");
    assert.match(problems.join("\n"), says);
    const { code, text } = await helm([path.join(charts, "tulle")], written(name, values));
    assert.notEqual(code, 0);
    assert.match(text, helmSays);
  });
}
