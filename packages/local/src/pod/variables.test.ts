// Environment variables as Kubernetes resolves them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Container, parseResource } from "@tulle/config";
import { availableParallelism, totalmem } from "node:os";
import { MissingText, resolveVariables, type TextsOf, type Variable, variablesOf } from "./variables.ts";

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

const nothing: TextsOf = () => undefined;

const fields = [
  { fieldPath: "metadata.name", expected: "web-1" },
  { fieldPath: "metadata.namespace", expected: "shop" },
  { fieldPath: "metadata.uid", expected: "u-1" },
  { fieldPath: "metadata.labels['app']", expected: "web" },
  { fieldPath: "metadata.labels['example.com/tier']", expected: "front" },
  { fieldPath: "metadata.labels['none']", expected: "" },
  { fieldPath: "metadata.labels['constructor']", expected: "" },
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
    assert.deepEqual(resolveVariables([{ name: "A", fieldPath }], pod, {}, nothing), { A: expected });
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
  return parseContainers([{ name: "app", env }]).findings;
}

function parseContainers(containers: readonly unknown[]): { containers: readonly Container[]; findings: string[] } {
  const { resource, findings } = parseResource({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "a" },
    spec: { containers },
  });
  return {
    containers: resource?.kind === "Pod" ? resource.spec.containers : [],
    findings: findings.map(({ severity, message }) => `${severity} ${message}`),
  };
}

/** Of the first container, whose manifest has no finding. */
function resolve(given: readonly Readonly<Record<string, unknown>>[], textsOf: TextsOf): Record<string, string> {
  const { containers, findings } = parseContainers(given);
  assert.deepEqual(findings, []);
  return resolveVariables(variablesOf(containers[0]!, containers), pod, {}, textsOf);
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
    assert.equal(resolveVariables(variables, pod, { HOST: "127.16.0.3", PORT: "80" }, nothing)["A"], expected);
  });
}

const held: Readonly<Record<string, Readonly<Record<string, string | Uint8Array>>>> = {
  "ConfigMap shop/settings": { LEVEL: "debug", "log.format": "json" },
  "ConfigMap shop/later": { LEVEL: "info" },
  "ConfigMap elsewhere/foreign": { A: "1" },
  "Secret shop/keys": {
    TOKEN: Buffer.from("s3cr\u{e9}t\n"),
    BINARY: Uint8Array.of(0xff),
    NUL: Buffer.from("hidden\0"),
  },
  "Secret shop/plain": { TOKEN: Buffer.from("t") },
};
const textsOf: TextsOf = (kind, namespace, name) => {
  const found = held[`${kind} ${namespace}/${name}`];
  return found && new Map(Object.entries(found));
};
const keyRef = (name: string, key: string, optional?: boolean) => ({
  valueFrom: { configMapKeyRef: { name, key, ...(optional === undefined ? {} : { optional }) } },
});

const sources: readonly {
  readonly name: string;
  readonly container: Readonly<Record<string, unknown>>;
  /** Variables, or what is missing. */
  readonly expected: Readonly<Record<string, string>> | string;
}[] = [
  {
    name: "a text of a ConfigMap and a value of a Secret",
    container: {
      env: [
        { name: "A", ...keyRef("settings", "LEVEL") },
        { name: "B", valueFrom: { secretKeyRef: { name: "keys", key: "TOKEN" } } },
        { name: "C", value: "$(A)/$(B)" },
      ],
    },
    expected: { A: "debug", B: "s3cr\u{e9}t\n", C: "debug/s3cr\u{e9}t\n" },
  },
  {
    name: "of envFrom the later source wins, and env beats both",
    container: {
      envFrom: [{ configMapRef: { name: "settings" } }, { configMapRef: { name: "later" } }],
      env: [
        { name: "OLD", value: "$(LEVEL)" },
        { name: "LEVEL", value: "mine" },
      ],
    },
    expected: { LEVEL: "mine", "log.format": "json", OLD: "info" },
  },
  {
    name: "a prefix",
    container: { envFrom: [{ prefix: "APP_", secretRef: { name: "plain" } }] },
    expected: { APP_TOKEN: "t" },
  },
  {
    name: "what is optional and not there leaves the variable as it is",
    container: {
      envFrom: [{ configMapRef: { name: "settings" } }, { secretRef: { name: "none", optional: true } }],
      env: [
        { name: "LEVEL", ...keyRef("none", "LEVEL", true) },
        { name: "X", ...keyRef("settings", "X", true) },
      ],
    },
    expected: { LEVEL: "debug", "log.format": "json" },
  },
  {
    name: "a ConfigMap that is not there",
    container: { env: [{ name: "A", ...keyRef("none", "LEVEL") }] },
    expected: "there is no ConfigMap shop/none, which the variable A needs",
  },
  {
    name: "one of another namespace is not there",
    container: { envFrom: [{ configMapRef: { name: "foreign" } }] },
    expected: "there is no ConfigMap shop/foreign, which envFrom needs",
  },
  {
    name: "a key that is not there",
    container: { env: [{ name: "A", valueFrom: { secretKeyRef: { name: "keys", key: "none" } } }] },
    expected: 'Secret shop/keys has no key "none", which the variable A needs',
  },
  {
    name: "bytes that are no text",
    container: { env: [{ name: "A", valueFrom: { secretKeyRef: { name: "keys", key: "BINARY" } } }] },
    expected: '"BINARY" of Secret shop/keys is no text, and cannot be a variable',
  },
  {
    name: "a NUL byte, without telling the secret",
    container: { env: [{ name: "A", valueFrom: { secretKeyRef: { name: "keys", key: "NUL" } } }] },
    expected: '"NUL" of Secret shop/keys holds a NUL byte, and cannot be a variable',
  },
];
for (const { name, container, expected } of sources) {
  test(`variables of ConfigMaps and Secrets: ${name}`, () => {
    const run = (): unknown => resolve([{ name: "app", ...container }], textsOf);
    if (typeof expected !== "string") assert.deepEqual(run(), expected);
    else assert.throws(run, (error) => error instanceof MissingText && error.message === expected);
  });
}

const resources = { limits: { cpu: "1500m", memory: "100Mi" }, requests: { cpu: 0.25 } };
const amounts: readonly { readonly resource: string; readonly divisor?: string | number; readonly expected: string }[] =
  [
    { resource: "limits.cpu", expected: "2" },
    { resource: "limits.cpu", divisor: "1m", expected: "1500" },
    { resource: "requests.cpu", divisor: "1m", expected: "250" },
    { resource: "requests.cpu", expected: "1" },
    { resource: "limits.memory", expected: "104857600" },
    { resource: "limits.memory", divisor: "1Mi", expected: "100" },
    { resource: "limits.memory", divisor: "1M", expected: "105" },
    { resource: "requests.memory", divisor: "1Ki", expected: "102400" },
    { resource: "requests.ephemeral-storage", divisor: 1, expected: "0" },
  ];
for (const { resource, divisor, expected } of amounts) {
  test(`resourceFieldRef of ${resource} in ${divisor ?? "no unit"}`, () => {
    const env = [
      { name: "A", valueFrom: { resourceFieldRef: { resource, ...(divisor === undefined ? {} : { divisor }) } } },
    ];
    assert.deepEqual(resolve([{ name: "app", env, resources }], nothing), { A: expected });
  });
}

test("resourceFieldRef of a container without limits is what the machine has, and may be another container's", () => {
  const of = (name: string, containerName: string, resource: string): unknown => ({
    name,
    valueFrom: { resourceFieldRef: { containerName, resource } },
  });
  const env = [of("A", "app", "limits.cpu"), of("B", "app", "limits.memory"), of("C", "beside", "limits.cpu")];
  assert.deepEqual(
    resolve(
      [
        { name: "app", env },
        { name: "beside", resources: { limits: { cpu: 7 } } },
      ],
      nothing,
    ),
    {
      A: String(availableParallelism()),
      B: String(totalmem()),
      C: "7",
    },
  );
});

for (const { name, env, expected } of [
  {
    name: "two sources at once",
    env: { valueFrom: { configMapKeyRef: { name: "a", key: "b" }, secretKeyRef: { name: "a", key: "b" } } },
    expected: /error /,
  },
  { name: "a value beside a source", env: { value: "a", ...keyRef("a", "b") }, expected: /a variable has a value or/ },
  {
    name: "an odd divisor",
    env: { valueFrom: { resourceFieldRef: { resource: "limits.cpu", divisor: "2" } } },
    expected: /no unit of limits\.cpu: 1, 1m/,
  },
  {
    name: "an odd resource",
    env: { valueFrom: { resourceFieldRef: { resource: "limits.gpu" } } },
    expected: /no resource that a variable can have/,
  },
]) {
  test(`refused as in Kubernetes: ${name}`, () => {
    assert.match(parseContainers([{ name: "app", env: [{ name: "A", ...env }] }]).findings.join("\n"), expected);
  });
}

test("what cannot be read here is no variable", () => {
  const of = (env: NonNullable<Container["env"]>): readonly Variable[] => variablesOf({ name: "a", env }, []);
  assert.deepEqual(of([{ name: "A", valueFrom: {} }]), []);
  assert.deepEqual(of([{ name: "A" }]), [{ name: "A", value: "" }]);
});
