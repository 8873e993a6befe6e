// The configurations by which the API server asks the control plane: for pods that are to be injected, and for
// resources that are to be checked. Both are made without a `caBundle`, which the leader writes; until then they
// refuse what they are asked for, and nobody else's pods.
//
// A pod is sent to one webhook of one revision: where a label of the namespace decides, its own labels do not, and
// where both spellings are there, Tulle's. What the labels mean in the end is decided by `decideInjection` there.
import { controlPlanePorts, injectionLabels, validatorWebhook, webhookPaths } from "../names.ts";
import { istioKinds, ownKinds } from "./base.ts";
import {
  all,
  type Condition,
  type Expression,
  isEqual,
  isSet,
  type Manifest,
  releaseNamespace,
  type Template,
  value,
  when,
} from "./template.ts";
import { ofRevision, tulledLabels, tulledName } from "./tulled-names.ts";

export interface InjectorOptions {
  readonly name: string | Expression;
  /** The revision, or the tag, that namespaces and pods are labelled with. */
  readonly selects: string | Expression;
  /** Whether those without a revision are meant, too; as the revision's name says unless told. */
  readonly isDefault?: Condition;
}

type Expressions = readonly Template[];

const [tulleNamespace, istioNamespace] = injectionLabels.namespace;
const [tulleRevision, istioRevision] = injectionLabels.revision;
const [tullePod, istioPod] = injectionLabels.pod;

/** Nothing of these is ever injected or refused: a cluster has to start without its mesh. */
const systemNamespaces = ["kube-system", "kube-public", "kube-node-lease", "local-path-storage"];
const yes = ["true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"];

const withIstioLabels = isSet("tulled.sidecarInjectorWebhook.istioLabels");
const missing = (key: string): Template => ({ key, operator: "DoesNotExist" });
const oneOf = (key: string, values: readonly (string | Expression)[]): Template => ({ key, operator: "In", values });
const noneOf = (key: string, values: readonly string[]): Template => ({ key, operator: "NotIn", values });
const notSystem = noneOf("kubernetes.io/metadata.name", systemNamespaces);
/** Istio's label says nothing, where it would say anything. */
const withoutIstio = (key: string): Template => when(withIstioLabels, missing(key));
const wanted = noneOf(tullePod, ["false"]);

/** `namespace` and `pod` are what is asked of their labels. */
interface Row {
  readonly name: string;
  readonly condition?: Condition;
  readonly namespace: Expressions;
  readonly pod: Expressions;
}

export function injectorConfiguration({
  name,
  selects,
  isDefault = isEqual("tulled.revision", "default"),
}: InjectorOptions): Manifest {
  const noNamespaceWord = [missing(tulleNamespace), withoutIstio(istioNamespace)];
  const noNamespaceRevision = [missing(tulleRevision), withoutIstio(istioRevision)];
  const byIstio = { condition: withIstioLabels };
  const byDefault = { condition: isDefault };
  const rows: readonly Row[] = [
    { name: "rev.namespace", namespace: [oneOf(tulleRevision, [selects]), ...noNamespaceWord], pod: [wanted] },
    {
      name: "istio-rev.namespace",
      ...byIstio,
      namespace: [oneOf(istioRevision, [selects]), missing(tulleRevision), ...noNamespaceWord],
      pod: [wanted],
    },
    {
      name: "rev.object",
      namespace: [...noNamespaceRevision, ...noNamespaceWord],
      pod: [oneOf(tulleRevision, [selects]), wanted],
    },
    {
      name: "istio-rev.object",
      ...byIstio,
      namespace: [...noNamespaceRevision, ...noNamespaceWord],
      pod: [oneOf(istioRevision, [selects]), missing(tulleRevision), wanted],
    },
    { name: "namespace", ...byDefault, namespace: [oneOf(tulleNamespace, ["enabled"])], pod: [wanted] },
    {
      name: "istio-namespace",
      condition: all(isDefault, withIstioLabels),
      namespace: [oneOf(istioNamespace, ["enabled"]), missing(tulleNamespace)],
      pod: [wanted],
    },
    {
      name: "object",
      ...byDefault,
      namespace: [...noNamespaceWord, ...noNamespaceRevision],
      pod: [oneOf(tullePod, yes), missing(tulleRevision), withoutIstio(istioRevision)],
    },
    {
      name: "istio-object",
      condition: all(isDefault, withIstioLabels),
      namespace: [...noNamespaceWord, ...noNamespaceRevision],
      pod: [oneOf(istioPod, yes), missing(tullePod), missing(tulleRevision), missing(istioRevision)],
    },
  ];
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    metadata: { name, labels: { ...tulledLabels, app: "sidecar-injector" } },
    webhooks: rows.map(({ condition, ...row }) => {
      const webhook = injector(row);
      return condition === undefined ? webhook : when(condition, webhook);
    }),
  };
}

function injector({ name, namespace, pod }: Row): Template {
  return {
    name: `${name}.sidecar-injector.tulle.io`,
    ...asked("inject"),
    failurePolicy: value("tulled.sidecarInjectorWebhook.failurePolicy"),
    reinvocationPolicy: "Never",
    namespaceSelector: { matchExpressions: [...namespace, notSystem] },
    objectSelector: { matchExpressions: pod },
    rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"], scope: "Namespaced" }],
  };
}

export function validatorConfiguration(): Manifest {
  const rules = [...ownKinds("tulle.io")].map(([group, resources]) => ({
    apiGroups: [group],
    apiVersions: ["*"],
    operations: ["CREATE", "UPDATE"],
    resources,
    scope: "*",
  }));
  const istioRules = [...istioKinds()].map(([group, resources]) =>
    when(isSet("tulled.watchIstioResources"), {
      apiGroups: [group],
      apiVersions: ["*"],
      operations: ["CREATE", "UPDATE"],
      resources,
      scope: "*",
    }),
  );
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: ofRevision(validatorWebhook("default")), labels: { ...tulledLabels, app: "validator" } },
    webhooks: [
      {
        name: "validation.tulle.io",
        ...asked("validate"),
        failurePolicy: value("tulled.validationWebhook.failurePolicy"),
        rules: [...rules, ...istioRules],
      },
    ],
  };
}

function asked(what: keyof typeof webhookPaths): Readonly<Record<string, Template>> {
  return {
    admissionReviewVersions: ["v1"],
    sideEffects: "None",
    matchPolicy: "Equivalent",
    timeoutSeconds: 10,
    clientConfig: {
      service: {
        name: tulledName,
        namespace: releaseNamespace,
        path: webhookPaths[what],
        port: controlPlanePorts.webhook.port,
      },
    },
  };
}
