// What is installed, looked at as objects: names that the other parts rely on, pods that the strictest Pod Security
// level takes, and webhooks that send each pod to one place.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  controlPlaneName,
  controlPlaneSelector,
  injectorWebhook,
  leaderLease,
  validatorWebhook,
  webhooksLease,
} from "../names.ts";
import { evaluateInstallation } from "./components.ts";
import type { Fields } from "./values.ts";

interface LabelTerm {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  readonly values?: readonly string[];
}
type Labels = Readonly<Record<string, string>>;
interface Webhook {
  readonly name: string;
  readonly namespaceSelector: { readonly matchExpressions: readonly LabelTerm[] };
  readonly objectSelector: { readonly matchExpressions: readonly LabelTerm[] };
}

function installed(
  values: Fields,
): readonly (Fields & { readonly kind: string; readonly metadata: { readonly name: string } })[] {
  const { objects, problems } = evaluateInstallation([values], "tulle-system");
  assert.deepEqual(problems, []);
  return objects;
}

for (const revision of ["default", "canary"]) {
  test(`names of the revision ${revision} are those that the other parts know`, () => {
    const objects = installed({ tulled: { revision } });
    const names = objects.map(({ kind, metadata: { name } }) => `${kind} ${name}`);
    for (const kind of ["Deployment", "Service", "ServiceAccount", "ClusterRole"])
      assert.ok(names.includes(`${kind} ${controlPlaneName(revision)}`), kind);
    assert.ok(names.includes(`MutatingWebhookConfiguration ${injectorWebhook(revision)}`));
    assert.ok(names.includes(`ValidatingWebhookConfiguration ${validatorWebhook(revision)}`));
    const service = objects.find(({ kind }) => kind === "Service")!;
    assert.deepEqual((service["spec"] as Fields)["selector"], controlPlaneSelector(revision));
    const role = objects.find(({ kind }) => kind === "Role");
    for (const lease of [leaderLease, webhooksLease(revision)])
      assert.ok(JSON.stringify(role).includes(`"${lease}"`), lease);
  });
}

test("pods of every part are restricted, and no webhook carries a bundle", () => {
  const objects = installed({ "authorization-server": { enabled: true } });
  const pods = objects.filter(({ kind }) => kind === "Deployment");
  assert.equal(pods.length, 2);
  for (const { spec } of pods as unknown as readonly {
    readonly spec: { readonly template: { readonly spec: { readonly containers: readonly Fields[] } } };
  }[]) {
    for (const { securityContext } of spec.template.spec.containers) {
      assert.deepEqual(securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        runAsNonRoot: true,
        capabilities: { drop: ["ALL"] },
        seccompProfile: { type: "RuntimeDefault" },
      });
    }
  }
  // Whoever applies them again would take it away.
  assert.ok(!JSON.stringify(objects).includes("caBundle"));
});

test("Istio's kinds are defined, checked and given to users where they are asked for", () => {
  const names = (values: Fields): readonly string[] => installed(values).map(({ metadata }) => metadata.name);
  assert.deepEqual(
    names({}).filter((name) => name.endsWith(".istio.io")),
    [],
  );
  const objects = installed({ base: { istioCustomResources: true }, tulled: { watchIstioResources: true } });
  const defined = objects.map(({ metadata }) => metadata.name).filter((name) => name.endsWith(".istio.io"));
  for (const name of ["virtualservices.networking", "sidecars.networking", "wasmplugins.extensions"])
    assert.ok(defined.includes(`${name}.istio.io`), name);
  const versions = objects.find(({ metadata }) => metadata.name === "sidecars.networking.istio.io")!["spec"] as Fields;
  assert.deepEqual(
    (versions["versions"] as readonly Fields[]).map((each) => each["name"]),
    ["v1", "v1beta1", "v1alpha3"],
  );
  const withEnvoyFilters = objects.filter((each) => JSON.stringify(each).includes('"envoyfilters"'));
  assert.deepEqual(
    withEnvoyFilters.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    [
      "CustomResourceDefinition envoyfilters.networking.istio.io",
      "ClusterRole tulle-view",
      "ClusterRole tulle-edit",
      "ValidatingWebhookConfiguration tulle-validator",
    ],
  );
});

const asked: readonly {
  readonly name: string;
  readonly namespace: Labels;
  readonly pod: Labels;
  readonly default: string | undefined;
  readonly canary: string | undefined;
  readonly besideIstio: string | undefined;
}[] = [
  { name: "nothing", namespace: {}, pod: {}, default: undefined, canary: undefined, besideIstio: undefined },
  {
    name: "a namespace",
    namespace: { "tulle-injection": "enabled" },
    pod: {},
    default: "namespace",
    canary: undefined,
    besideIstio: "namespace",
  },
  {
    name: "a namespace by Istio's label",
    namespace: { "istio-injection": "enabled" },
    pod: {},
    default: "istio-namespace",
    canary: undefined,
    besideIstio: undefined,
  },
  {
    name: "a namespace by both",
    namespace: { "istio-injection": "enabled", "tulle-injection": "enabled" },
    pod: { "sidecar.istio.io/inject": "true" },
    default: "namespace",
    canary: undefined,
    besideIstio: "namespace",
  },
  {
    name: "a namespace that does not want it",
    namespace: { "tulle-injection": "disabled" },
    pod: { "sidecar.tulle.io/inject": "true" },
    default: undefined,
    canary: undefined,
    besideIstio: undefined,
  },
  {
    name: "a pod that does not want it",
    namespace: { "tulle-injection": "enabled" },
    pod: { "sidecar.tulle.io/inject": "false" },
    default: undefined,
    canary: undefined,
    besideIstio: undefined,
  },
  {
    name: "a pod",
    namespace: {},
    pod: { "sidecar.tulle.io/inject": "true" },
    default: "object",
    canary: undefined,
    besideIstio: "object",
  },
  {
    name: "a pod by Istio's label",
    namespace: {},
    pod: { "sidecar.istio.io/inject": "true" },
    default: "istio-object",
    canary: undefined,
    besideIstio: undefined,
  },
  {
    name: "a pod by Istio's label in a namespace of Istio",
    namespace: { "istio-injection": "enabled" },
    pod: { "sidecar.tulle.io/inject": "true" },
    default: "istio-namespace",
    canary: undefined,
    besideIstio: "object",
  },
  {
    name: "a namespace of another revision",
    namespace: { "tulle.io/rev": "canary" },
    pod: {},
    default: undefined,
    canary: "rev.namespace",
    besideIstio: undefined,
  },
  {
    name: "a namespace of another revision by Istio's label",
    namespace: { "istio.io/rev": "canary" },
    pod: { "sidecar.tulle.io/inject": "true" },
    default: undefined,
    canary: "istio-rev.namespace",
    besideIstio: "object",
  },
  {
    name: "a pod of another revision",
    namespace: {},
    pod: { "tulle.io/rev": "canary", "sidecar.tulle.io/inject": "true" },
    default: undefined,
    canary: "rev.object",
    besideIstio: undefined,
  },
  {
    name: "a gateway",
    namespace: { "kubernetes.io/metadata.name": "tulle-system" },
    pod: { "tulle.io/rev": "default", "sidecar.tulle.io/inject": "true" },
    default: "rev.object",
    canary: undefined,
    besideIstio: "rev.object",
  },
  {
    name: "the control plane itself",
    namespace: { "tulle-injection": "enabled" },
    pod: { app: "tulled", "tulle.io/rev": "default", "sidecar.tulle.io/inject": "false" },
    default: undefined,
    canary: undefined,
    besideIstio: undefined,
  },
  {
    name: "the cluster's own",
    namespace: { "kubernetes.io/metadata.name": "kube-system", "tulle-injection": "enabled" },
    pod: { "sidecar.tulle.io/inject": "true" },
    default: undefined,
    canary: undefined,
    besideIstio: undefined,
  },
];

const revisions = {
  default: {},
  canary: { tulled: { revision: "canary" } },
  besideIstio: { tulled: { sidecarInjectorWebhook: { istioLabels: false } } },
} as const;

for (const { name, namespace, pod, ...expected } of asked) {
  test(`who is asked for: ${name}`, () => {
    for (const [revision, values] of Object.entries(revisions)) {
      const configuration = installed(values).find(({ kind }) => kind === "MutatingWebhookConfiguration");
      const webhooks = configuration?.["webhooks"] as readonly Webhook[];
      const matching = webhooks.filter(
        ({ namespaceSelector, objectSelector }) =>
          namespaceSelector.matchExpressions.every((term) => isMet(term, namespace)) &&
          objectSelector.matchExpressions.every((term) => isMet(term, pod)),
      );
      const wanted = expected[revision as keyof typeof revisions];
      const names = matching.map((webhook) => webhook.name.replace(".sidecar-injector.tulle.io", ""));
      assert.deepEqual(names, wanted === undefined ? [] : [wanted], revision);
    }
  });
}

function isMet({ key, operator, values = [] }: LabelTerm, labels: Labels): boolean {
  const value = labels[key];
  if (operator === "Exists" || operator === "DoesNotExist") return (value !== undefined) === (operator === "Exists");
  return (value !== undefined && values.includes(value)) === (operator === "In");
}
