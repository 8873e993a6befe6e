// The injection rules, in both spellings.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decideInjection, explainInjection, type Injection, type InjectionInput } from "./decide-injection.ts";

const tulleEnabled = { "tulle-injection": "enabled" };
const cases: readonly { name: string; input: Partial<InjectionInput>; expected: Injection }[] = [
  { name: "no label anywhere", input: {}, expected: "none" },
  { name: "namespace enabled", input: { namespaceLabels: tulleEnabled }, expected: "sidecar" },
  {
    name: "namespace enabled, Istio's name",
    input: { namespaceLabels: { "istio-injection": "enabled" } },
    expected: "sidecar",
  },
  { name: "namespace of a revision", input: { namespaceLabels: { "istio.io/rev": "default" } }, expected: "sidecar" },
  {
    name: "namespace disabled beats the pod",
    input: { namespaceLabels: { "tulle-injection": "disabled" }, podLabels: { "sidecar.tulle.io/inject": "true" } },
    expected: "none",
  },
  { name: "pod label asks", input: { podLabels: { "sidecar.tulle.io/inject": "true" } }, expected: "sidecar" },
  {
    name: "pod label asks, Istio's name",
    input: { podLabels: { "sidecar.istio.io/inject": "yes" } },
    expected: "sidecar",
  },
  {
    name: "pod label refuses",
    input: { namespaceLabels: tulleEnabled, podLabels: { "sidecar.istio.io/inject": "false" } },
    expected: "none",
  },
  {
    name: "pod annotation refuses",
    input: { namespaceLabels: tulleEnabled, podAnnotations: { "sidecar.tulle.io/inject": "off" } },
    expected: "none",
  },
  {
    name: "label beats annotation",
    input: { podLabels: { "sidecar.tulle.io/inject": "on" }, podAnnotations: { "sidecar.tulle.io/inject": "false" } },
    expected: "sidecar",
  },
  { name: "host network", input: { namespaceLabels: tulleEnabled, hostNetwork: true }, expected: "none" },
  {
    name: "namespaces of the platform",
    input: { namespace: "kube-system", namespaceLabels: tulleEnabled },
    expected: "none",
  },
  {
    name: "gateway template",
    input: {
      podLabels: { "sidecar.tulle.io/inject": "true" },
      podAnnotations: { "inject.istio.io/templates": "gateway" },
    },
    expected: "gateway",
  },
  {
    name: "gateway template among others",
    input: { namespaceLabels: tulleEnabled, podAnnotations: { "inject.istio.io/templates": "gateway, audit" } },
    expected: "gateway",
  },
  { name: "a value that is neither", input: { namespaceLabels: { "istio-injection": "yes" } }, expected: "none" },
  {
    name: "a namespace's label that is neither, and the pod asks",
    input: { namespaceLabels: { "istio-injection": "yes" }, podLabels: { "sidecar.istio.io/inject": "true" } },
    expected: "none",
  },
  {
    name: "a pod's word that is neither means no",
    input: { namespaceLabels: tulleEnabled, podLabels: { "sidecar.istio.io/inject": "maybe" } },
    expected: "none",
  },
  {
    name: "a pod's empty word says nothing",
    input: { namespaceLabels: tulleEnabled, podLabels: { "sidecar.istio.io/inject": "" } },
    expected: "sidecar",
  },
  { name: "the pod's revision asks", input: { podLabels: { "tulle.io/rev": "canary" } }, expected: "sidecar" },
  {
    name: "the pod's revision does not ask where the pod refuses",
    input: { podLabels: { "tulle.io/rev": "canary", "sidecar.tulle.io/inject": "false" } },
    expected: "none",
  },
  { name: "files without a label", input: { injectsUnlabelled: true }, expected: "sidecar" },
  {
    name: "files whose pod refuses",
    input: { injectsUnlabelled: true, podLabels: { "sidecar.istio.io/inject": "no" } },
    expected: "none",
  },
  {
    name: "the namespace's revision is another control plane's",
    input: { namespaceLabels: { "istio.io/rev": "canary" }, revisions: new Set(["default"]) },
    expected: "none",
  },
  {
    name: "the namespace's revision is a tag of this one",
    input: { namespaceLabels: { "istio.io/rev": "prod" }, revisions: new Set(["r2", "prod"]) },
    expected: "sidecar",
  },
  {
    name: "enabled is for the default revision",
    input: { namespaceLabels: tulleEnabled, revisions: new Set(["canary"]) },
    expected: "none",
  },
  {
    name: "enabled beats the namespace's revision",
    input: { namespaceLabels: { ...tulleEnabled, "istio.io/rev": "canary" }, revisions: new Set(["default"]) },
    expected: "sidecar",
  },
  {
    name: "the namespace's revision beats the pod's",
    input: {
      namespaceLabels: { "tulle.io/rev": "canary" },
      podLabels: { "tulle.io/rev": "default" },
      revisions: new Set(["canary"]),
    },
    expected: "sidecar",
  },
  {
    name: "the pod asks without a revision: the default one",
    input: { podLabels: { "sidecar.istio.io/inject": "true" }, revisions: new Set(["canary"]) },
    expected: "none",
  },
  {
    name: "gateway template alone asks for nothing",
    input: { podAnnotations: { "inject.tulle.io/templates": "gateway" } },
    expected: "none",
  },
];

for (const { name, input, expected } of cases) {
  test(`${name}: ${expected}`, () => {
    const whole = { namespace: "shop", namespaceLabels: {}, podLabels: {}, podAnnotations: {}, hostNetwork: false };
    assert.equal(decideInjection({ ...whole, ...input }), expected);
  });
}

const whole: InjectionInput = {
  namespace: "shop",
  namespaceLabels: {},
  podLabels: {},
  podAnnotations: {},
  hostNetwork: false,
};
const contradictions: readonly { input: Partial<InjectionInput>; warning: string; injection: Injection }[] = [
  {
    input: { namespaceLabels: { "tulle-injection": "disabled", "istio-injection": "enabled" } },
    warning: 'the namespace has tulle-injection="disabled" and istio-injection="enabled": the first counts',
    injection: "none",
  },
  {
    input: { namespaceLabels: { "tulle-injection": "enabled", "tulle.io/rev": "canary" } },
    warning: 'the namespace has tulle-injection="enabled" and tulle.io/rev="canary": the first counts',
    injection: "sidecar",
  },
  {
    input: {
      podLabels: { "sidecar.istio.io/inject": "true" },
      podAnnotations: { "sidecar.istio.io/inject": "false" },
    },
    warning:
      'the pod has the label sidecar.istio.io/inject="true" and the annotation sidecar.istio.io/inject="false": the label counts',
    injection: "sidecar",
  },
  {
    input: { podLabels: { "sidecar.tulle.io/inject": "false", "sidecar.istio.io/inject": "true" } },
    warning: 'the pod has sidecar.tulle.io/inject="false" and sidecar.istio.io/inject="true": the first counts',
    injection: "none",
  },
  {
    input: { namespaceLabels: { "istio.io/rev": "a" }, podLabels: { "istio.io/rev": "b" } },
    warning: 'the pod has istio.io/rev="b", its namespace istio.io/rev="a": that counts',
    injection: "sidecar",
  },
];
for (const { input, warning, injection } of contradictions) {
  test(`a contradiction is told: ${warning}`, () => {
    const { warnings, injection: found } = explainInjection({ ...whole, ...input });
    assert.deepEqual(warnings, [warning]);
    assert.equal(found, injection);
  });
}

test("labels that agree in both spellings are no contradiction", () => {
  const both = { "tulle-injection": "enabled", "istio-injection": "enabled" };
  assert.deepEqual(explainInjection({ ...whole, namespaceLabels: both }).warnings, []);
});
