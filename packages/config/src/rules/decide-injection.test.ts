// The injection rules, in both spellings.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decideInjection, type Injection, type InjectionInput } from "./decide-injection.ts";

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
