// Environment variables as Kubernetes resolves them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseResource } from "@tulle/config";
import { resolveVariables, type Variable, variableOf } from "./variables.ts";

const pod = {
  name: "web-1",
  namespace: "shop",
  uid: "u-1",
  labels: { app: "web", "example.com/tier": "front" },
  annotations: { note: "a 'b'" },
  nodeName: "laptop",
  serviceAccount: "webapp",
  podAddress: "127.16.0.2",
  hostAddress: "127.0.0.1",
};

const fields = [
  { fieldPath: "metadata.name", expected: "web-1" },
  { fieldPath: "metadata.namespace", expected: "shop" },
  { fieldPath: "metadata.uid", expected: "u-1" },
  { fieldPath: "metadata.labels['app']", expected: "web" },
  { fieldPath: "metadata.labels['example.com/tier']", expected: "front" },
  { fieldPath: "metadata.labels['none']", expected: "" },
  { fieldPath: "metadata.annotations['note']", expected: "a 'b'" },
  { fieldPath: "spec.nodeName", expected: "laptop" },
  { fieldPath: "spec.serviceAccountName", expected: "webapp" },
  { fieldPath: "status.podIP", expected: "127.16.0.2" },
  { fieldPath: "status.podIPs", expected: "127.16.0.2" },
  { fieldPath: "status.hostIP", expected: "127.0.0.1" },
  { fieldPath: "status.hostIPs", expected: "127.0.0.1" },
];
for (const { fieldPath, expected } of fields) {
  test(`fieldRef of ${fieldPath}`, () => {
    assert.deepEqual(resolveVariables([{ name: "A", fieldPath }], pod, {}), { A: expected });
    assert.deepEqual(findingsOf(fieldPath), []);
  });
}

for (const fieldPath of ["metadata.nmae", "metadata.labels", "status.phase", "metadata.labels[app]", ""]) {
  test(`fieldRef of ${fieldPath}, which nobody can resolve, is an error`, () => {
    assert.match(findingsOf(fieldPath).join(), /error .*is no field of a pod that a variable can have/);
  });
}

function findingsOf(fieldPath: string): readonly string[] {
  const env = [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath } } }];
  const { findings } = parseResource({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "a" },
    spec: { containers: [{ name: "app", env }] },
  });
  return findings.map(({ severity, message }) => `${severity} ${message}`);
}

const texts: readonly { name: string; variables: readonly Variable[]; expected: string }[] = [
  {
    name: "one before",
    variables: [
      { name: "B", value: "1" },
      { name: "A", value: "x$(B)y" },
    ],
    expected: "x1y",
  },
  {
    name: "a field before",
    variables: [
      { name: "B", fieldPath: "metadata.name" },
      { name: "A", value: "$(B)" },
    ],
    expected: "web-1",
  },
  {
    name: "one behind",
    variables: [
      { name: "A", value: "$(B)" },
      { name: "B", value: "1" },
    ],
    expected: "$(B)",
  },
  {
    name: "one of the platform",
    variables: [{ name: "A", value: "http://$(HOST):$(PORT)" }],
    expected: "http://127.16.0.3:80",
  },
  { name: "one that nobody knows", variables: [{ name: "A", value: "$(NONE) $(" }], expected: "$(NONE) $(" },
  {
    name: "escaped",
    variables: [
      { name: "B", value: "1" },
      { name: "A", value: "$$(B) $$ $B" },
    ],
    expected: "$(B) $ $B",
  },
  {
    name: "not again",
    variables: [
      { name: "B", value: "$$(C)" },
      { name: "C", value: "2" },
      { name: "A", value: "$(B)" },
    ],
    expected: "$(C)",
  },
];
for (const { name, variables, expected } of texts) {
  test(`a value that names a variable: ${name}`, () => {
    assert.equal(resolveVariables(variables, pod, { HOST: "127.16.0.3", PORT: "80" })["A"], expected);
  });
}

test("what cannot be read here is no variable", () => {
  assert.equal(variableOf({ name: "A", valueFrom: {} }), undefined);
  assert.deepEqual(variableOf({ name: "A" }), { name: "A", value: "" });
});
