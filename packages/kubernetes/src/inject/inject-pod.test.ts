// What is not injected, and why: pods that stay as they are, and pods that are refused with what is wrong with them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { evaluateInstallation } from "../install/components.ts";
import { injectorWebhook, rootNamespace } from "../names.ts";
import { injectPod, type InjectionRequest, type InjectionResult } from "./inject-pod.ts";
import { type InjectionValues, defaultValues, readValues } from "./values.ts";

const values = defaultValues("1.0.0");
const enabled = { "tulle-injection": "enabled" };
const spec = { containers: [{ name: "main", image: "app:1" }] };

function inject(pod: unknown, more: Partial<InjectionRequest> = {}): InjectionResult {
  return injectPod({ pod, namespace: { name: "shop", labels: enabled }, mesh: {}, values, ...more });
}

const annotated = (annotations: object, more: object = {}): object => ({
  metadata: { annotations },
  spec: { ...spec, ...more },
});
const labelled = (labels: object): object => ({ metadata: { labels }, spec });

const passed: readonly {
  readonly name: string;
  readonly pod: unknown;
  readonly more?: Partial<InjectionRequest>;
  readonly reason: string;
}[] = [
  {
    name: "on the node's network",
    pod: { spec: { ...spec, hostNetwork: true } },
    reason: "it uses the network of its node (hostNetwork)",
  },
  {
    name: "of the platform",
    pod: { spec },
    more: { namespace: { name: "kube-system", labels: enabled } },
    reason: "the namespace kube-system is one of the platform",
  },
  {
    name: "nobody asks",
    pod: { spec },
    more: { namespace: { name: "shop", labels: {} } },
    reason: "neither its namespace nor the pod itself asks for a proxy",
  },
  {
    name: "it refuses",
    pod: labelled({ "sidecar.istio.io/inject": "false" }),
    reason: 'the pod has sidecar.istio.io/inject="false"',
  },
  {
    name: "another revision's",
    pod: { spec },
    more: { revisions: new Set(["canary"]) },
    reason: 'its namespace has the label tulle-injection="enabled", which is for the revision "default"',
  },
  { name: "on Windows", pod: { spec: { ...spec, os: { name: "windows" } } }, reason: "it runs on Windows" },
  {
    name: "on Windows by its nodes",
    pod: { spec: { ...spec, nodeSelector: { "kubernetes.io/os": "windows" } } },
    reason: "it runs on Windows",
  },
  {
    name: "with Istio's sidecar",
    pod: {
      metadata: {
        annotations: { "sidecar.istio.io/status": '{"containers":["istio-proxy"],"initContainers":["istio-init"]}' },
      },
      spec: {
        containers: [...spec.containers, { name: "istio-proxy", image: "istio/proxyv2" }],
        initContainers: [{ name: "istio-init", image: "i" }],
      },
    },
    reason: "it has a proxy already",
  },
];

for (const { name, pod, more, reason } of passed) {
  test(`stays as it is: ${name}`, () => {
    assert.deepEqual(inject(pod, more), { outcome: "passed", reason, warnings: [] });
  });
}

const sidecar = "sidecar.istio.io";
const refused: readonly {
  readonly name: string;
  readonly pod: unknown;
  readonly values?: Partial<InjectionValues>;
  readonly problem: string | RegExp;
}[] = [
  { name: "no object", pod: "pod", problem: "it is no object" },
  { name: "no spec", pod: { metadata: {} }, problem: "it has no spec" },
  { name: "no containers", pod: { spec: {} }, problem: "spec has no containers" },
  { name: "containers that are null", pod: { spec: { containers: null } }, problem: "spec has no containers" },
  {
    name: "a name that is a number",
    pod: { metadata: { name: 12 }, spec },
    problem: "its name is no text: put it in quotes",
  },
  {
    name: "a container for the proxy with a variable that has no name",
    pod: { spec: { containers: [{ name: "a" }, { name: "tulle-proxy", env: [{ value: "1" }] }] } },
    problem: "its own container for the proxy: an item of env has no name",
  },
  { name: "an empty list of containers", pod: { spec: { containers: [] } }, problem: "spec.containers is empty" },
  {
    name: "a container without a name",
    pod: { spec: { containers: [{ image: "a" }] } },
    problem: "spec.containers[0] has no name",
  },
  {
    name: "a name twice",
    pod: { spec: { containers: [{ name: "a" }, { name: "a" }] } },
    problem: 'spec.containers has "a" twice',
  },
  {
    name: "a label that is no text",
    pod: labelled({ app: true }),
    problem: "metadata.labels: app is true, no text: put it in quotes",
  },
  {
    name: "annotations that are a list",
    pod: { metadata: { annotations: [] }, spec },
    problem: "metadata.annotations is no object",
  },
  {
    name: "a mode that there is not",
    pod: annotated({ [`${sidecar}/interceptionMode`]: "SOME" }),
    problem: /interceptionMode is "SOME"/,
  },
  {
    name: "a range that is none",
    pod: annotated({ "traffic.sidecar.istio.io/excludeOutboundIPRanges": "10.0.0.1" }),
    problem: /excludeOutboundIPRanges/,
  },
  {
    name: "a port that is none",
    pod: annotated({ "traffic.sidecar.istio.io/excludeInboundPorts": "ssh" }),
    problem: /excludeInboundPorts/,
  },
  {
    name: "no quantity",
    pod: annotated({ [`${sidecar}/proxyCPU`]: "much" }),
    problem: 'sidecar.istio.io/proxyCPU is "much", not a quantity such as "100m" or "128Mi"',
  },
  {
    name: "a quantity below zero",
    pod: annotated({ [`${sidecar}/proxyMemory`]: "-1Mi" }),
    problem: /proxyMemory is "-1Mi"/,
  },
  {
    name: "a request above the limit",
    pod: annotated({ [`${sidecar}/proxyCPU`]: "2", [`${sidecar}/proxyCPULimit`]: "1" }),
    problem: "sidecar.istio.io/proxyCPU is 2, more than sidecar.istio.io/proxyCPULimit, 1",
  },
  {
    name: "a log level that there is not",
    pod: annotated({ [`${sidecar}/logLevel`]: "loud" }),
    problem: /logLevel is "loud"/,
  },
  {
    name: "a proxy that there is not",
    pod: annotated({ "sidecar.tulle.io/proxy": "nginx" }),
    problem: 'sidecar.tulle.io/proxy is "nginx", not tulle or envoy',
  },
  {
    name: "an image that is a shell's line",
    pod: annotated({ [`${sidecar}/proxyImage`]: "a; rm -rf /" }),
    problem: /proxyImage/,
  },
  {
    name: "a flag that is none",
    pod: annotated({ [`${sidecar}/nativeSidecar`]: "maybe" }),
    problem: /nativeSidecar is "maybe"/,
  },
  {
    name: "a number that is none",
    pod: annotated({ "readiness.status.sidecar.istio.io/periodSeconds": "-1" }),
    problem: /periodSeconds/,
  },
  {
    name: "volumes that are no JSON",
    pod: annotated({ [`${sidecar}/userVolume`]: "{" }),
    problem: /userVolume is "{"/,
  },
  { name: "volumes that are a list", pod: annotated({ [`${sidecar}/userVolume`]: "[]" }), problem: /userVolume/ },
  {
    name: "a volume in the place of the proxy's own",
    pod: annotated({ [`${sidecar}/userVolume`]: '{"tulle-token":{"emptyDir":{}}}' }),
    problem: /"tulle-token"/,
  },
  {
    name: "a volume of a name that is taken",
    pod: annotated({ [`${sidecar}/userVolume`]: '{"data":{"emptyDir":{}}}' }, { volumes: [{ name: "data" }] }),
    problem: /"data"/,
  },
  {
    name: "a volume of the pod that has the name of the proxy's own",
    pod: { spec: { ...spec, volumes: [{ name: "tulle-state", hostPath: { path: "/" } }] } },
    problem: /"tulle-state"/,
  },
  {
    name: "a mount over the proxy's token",
    pod: annotated(
      { [`${sidecar}/userVolumeMount`]: '{"data":{"mountPath":"/var/run/secrets/tokens/"}}' },
      { volumes: [{ name: "data" }] },
    ),
    problem: /\/var\/run\/secrets\/tokens/,
  },
  {
    name: "a container of the name of the one that captures",
    pod: { spec: { ...spec, initContainers: [{ name: "tulle-capture", image: "mine" }] } },
    problem: /"tulle-capture"/,
  },
  {
    name: "nothing but a container for the proxy",
    pod: { spec: { containers: [{ name: "istio-proxy", image: "auto" }] } },
    problem: /^the pod has no container beside its proxy/,
  },
  {
    name: "a template that there is not",
    pod: annotated({ "inject.istio.io/templates": "sidecar,constructor" }),
    problem: 'there is no template "constructor": there are sidecar, gateway',
  },
  {
    name: "a template of Go's",
    pod: annotated({ "inject.istio.io/templates": "go" }),
    values: { templates: { go: "spec: {{ .Spec }}" } },
    problem: /Go's template language/,
  },
  {
    name: "a template that is no YAML",
    pod: annotated({ "inject.istio.io/templates": "bad" }),
    values: { templates: { bad: "spec: [" } },
    problem: /the template "bad" is no YAML/,
  },
  {
    name: "a template with a directive",
    pod: annotated({ "inject.istio.io/templates": "bad" }),
    values: { templates: { bad: "spec: { $patch: delete }" } },
    problem: /\$patch/,
  },
];

for (const { name, pod, values: changed, problem } of refused) {
  test(`refused: ${name}`, () => {
    const result = inject(pod, { values: { ...values, ...changed } });
    assert.equal(result.outcome, "refused", JSON.stringify(result));
    const { problems } = result as { problems: readonly string[] };
    assert.equal(problems.length, 1, problems.join("\n"));
    if (typeof problem === "string") assert.deepEqual(problems, [problem]);
    else assert.match(problems[0]!, problem);
  });
}

test("pods that somebody has made large cost no more than they are", () => {
  const many = Array.from({ length: 20_000 }, (_, index) => ({ name: `v${index}`, value: "x" }));
  const pods = [
    annotated({ "inject.istio.io/templates": "x,".repeat(100_000) }),
    annotated({ [`${sidecar}/userVolume`]: `{"a":{"b":${"[".repeat(100_000)}${"]".repeat(100_000)}}}` }),
    annotated({ "proxy.istio.io/config": "a: ".repeat(80_000) }),
    annotated({ "traffic.sidecar.istio.io/excludeOutboundPorts": "1,".repeat(120_000) }),
  ];
  for (const pod of pods) {
    const result = inject(pod);
    assert.equal(result.outcome, "refused");
    assert.ok(JSON.stringify(result).length < 1000);
  }
  const large = inject({
    spec: {
      containers: [
        { name: "a", env: many },
        { name: "istio-proxy", env: many },
      ],
    },
  });
  assert.equal(large.outcome, "injected");
});

test("all problems of a pod are told at once", () => {
  const result = inject(
    annotated({ [`${sidecar}/proxyCPU`]: "x", [`${sidecar}/logLevel`]: "y", "inject.istio.io/templates": "z" }),
  );
  assert.equal((result as { problems: readonly string[] }).problems.length, 3);
});

test("names that JavaScript's objects have are names like any other", () => {
  const pod = JSON.parse(
    '{"metadata":{"labels":{"__proto__":"a","constructor":"b"},"annotations":{"__proto__":"c"}},"spec":{"containers":[{"name":"constructor"}]}}',
  ) as unknown;
  const result = inject(pod);
  assert.equal(result.outcome, "injected");
  assert.equal(({} as Record<string, unknown>)["sidecar.istio.io/status"], undefined);
  assert.match(JSON.stringify(result), /"__proto__":"a"/);
});

const untrue: readonly { readonly status: string; readonly warning: string }[] = [
  { status: "yes", warning: "is no status" },
  { status: "[]", warning: "is no status" },
  { status: '{"containers":["main"]}', warning: "names no proxy" },
  {
    status: '{"containers":null,"initContainers":["tulle-proxy"]}',
    warning: 'names the container "tulle-proxy", which is not there',
  },
];
for (const { status, warning } of untrue) {
  test(`a status that somebody has made up keeps no proxy away: ${status}`, () => {
    const result = inject(annotated({ [`${sidecar}/status`]: status }));
    assert.equal(result.outcome, "injected");
    assert.deepEqual(result.warnings, [`the annotation ${sidecar}/status ${warning}: the pod is injected`]);
  });
}

test("what has no effect is told", () => {
  const result = inject(
    annotated({ [`${sidecar}/bootstrapOverride`]: "mine", "proxy.istio.io/config": "binaryPath: /x" }),
  );
  assert.deepEqual(result.warnings, [
    "binaryPath of the annotation proxy.istio.io/config has no effect yet",
    "the annotation sidecar.istio.io/bootstrapOverride has no effect",
  ]);
});

test("a container that came after the injection has its probes rewritten as well", () => {
  const withProbe = (name: string): object => ({
    name,
    image: "a",
    livenessProbe: { httpGet: { path: "/live", port: 8080 } },
  });
  const first = inject({ spec: { containers: [withProbe("main")] } });
  assert.equal(first.outcome, "injected");
  const { pod } = first;
  const second = inject({ ...pod, spec: { ...pod.spec, containers: [...pod.spec.containers, withProbe("late")] } });
  assert.equal(second.outcome, "injected");
  const { patch } = second;
  assert.deepEqual(
    patch.map(({ op, path }) => `${op} ${path.replace(/env\/\d+/, "env/N")}`),
    [
      "replace /spec/containers/1/livenessProbe/httpGet/path",
      "replace /spec/containers/1/livenessProbe/httpGet/port",
      "add /spec/containers/1/lifecycle",
      "replace /spec/initContainers/0/env/N/value",
    ],
  );
  assert.match(JSON.stringify(patch), /app-health\/main\/livez.*app-health\/late\/livez/);
});

const held = { preStop: { httpGet: { path: "/app-lifecycle/drain", port: 15_020 } } };
const ownHook = { preStop: { exec: { command: ["end"] } }, postStart: { exec: { command: ["begin"] } } };
const hooks: readonly {
  readonly name: string;
  readonly more: object;
  readonly podSpec?: object;
  readonly is: unknown;
}[] = [
  { name: "waits for clients", more: {}, is: held },
  { name: "with a hook of its own stays as it is", more: { lifecycle: ownHook }, is: ownHook },
  {
    name: "with another hook keeps it",
    more: { lifecycle: { postStart: ownHook.postStart } },
    is: { ...held, postStart: ownHook.postStart },
  },
  {
    name: "with little time is told at once",
    more: {},
    podSpec: { terminationGracePeriodSeconds: 9 },
    is: undefined,
  },
];

for (const { name, more, podSpec = {}, is } of hooks) {
  test(`the end of a program ${name}`, () => {
    const result = inject({ spec: { ...podSpec, containers: [{ name: "main", image: "a", ...more }] } });
    assert.equal(result.outcome, "injected");
    const [main] = result.pod.spec.containers as readonly { readonly lifecycle?: unknown }[];
    assert.deepEqual(main?.lifecycle, is);
  });
}

for (const [seconds, most] of [
  [undefined, undefined],
  [20, "10000"],
  [300, undefined],
] as const) {
  test(`of a grace of ${seconds ?? "the usual"} seconds the hook takes half at the most`, () => {
    const podSpec = seconds === undefined ? {} : { terminationGracePeriodSeconds: seconds };
    const result = inject({ spec: { ...podSpec, containers: [{ name: "main", image: "a" }] } });
    assert.equal(result.outcome, "injected");
    const [proxy] = result.pod.spec.initContainers as readonly { readonly env?: readonly NamedValue[] }[];
    assert.equal(proxy?.env?.find(({ name }) => name === "TULLE_END_HOLD_MOST_MS")?.value, most);
  });
}

for (const [which, limits, expected] of [
  ["little where its limits are above", { cpu: "2", memory: "512Mi" }, { cpu: "10m", memory: "32Mi" }],
  ["what it is limited to where the pod is guaranteed that", { cpu: "200m", memory: "256Mi" }, undefined],
] as const) {
  test(`the capture beside a native sidecar requests ${which}`, () => {
    const asked = { cpu: "200m", memory: "256Mi" };
    const annotations = {
      "sidecar.istio.io/proxyCPU": asked.cpu,
      "sidecar.istio.io/proxyMemory": asked.memory,
      "sidecar.istio.io/proxyCPULimit": limits.cpu,
      "sidecar.istio.io/proxyMemoryLimit": limits.memory,
    };
    const result = inject({ metadata: { annotations }, spec: { containers: [{ name: "main", image: "a" }] } });
    assert.equal(result.outcome, "injected");
    const [proxy, capture] = result.pod.spec.initContainers as readonly { readonly resources?: object }[];
    assert.deepEqual(proxy?.resources, { requests: asked, limits });
    assert.deepEqual(capture?.resources, { requests: expected ?? asked, limits });
  });
}

interface NamedValue {
  readonly name: string;
  readonly value?: string;
}

test("values have Istio's names", () => {
  const file = {
    revision: "canary",
    global: {
      hub: "registry.example/mesh",
      tag: 2,
      imagePullSecrets: [{ name: "a" }, "b"],
      network: "west",
      multiCluster: { clusterName: "east-1" },
      proxy: {
        kind: "envoy",
        logLevel: "debug",
        resources: { limits: { memory: "1Gi" } },
        excludeIPRanges: "10.0.0.0/8",
        excludeOutboundPorts: "",
      },
    },
    cni: { enabled: true },
    sidecarInjectorWebhook: { rewriteAppHTTPProbe: false, templates: { mine: "spec: {}" } },
    pilot: { replicaCount: 2 },
  };
  const read = readValues(file, values);
  assert.deepEqual(read.problems, []);
  assert.deepEqual(read.values, {
    ...values,
    revision: "canary",
    controlPlaneAddress: "tulled-canary.tulle-system.svc:15012",
    hub: "registry.example/mesh",
    tag: "2",
    imagePullSecrets: ["a", "b"],
    network: "west",
    clusterId: "east-1",
    proxy: "envoy",
    logLevel: "debug",
    resources: { requests: { cpu: "100m", memory: "160Mi" }, limits: { cpu: "2", memory: "1Gi" } },
    capture: { excludeOutboundIpRanges: "10.0.0.0/8" },
    cni: true,
    rewritesProbes: false,
    templates: { mine: "spec: {}" },
  });
});

test("what is installed without a word is what is injected without values", () => {
  const { objects } = evaluateInstallation([], rootNamespace);
  const map = objects.find(
    ({ kind, metadata }) => kind === "ConfigMap" && metadata.name === injectorWebhook("default"),
  );
  const { data } = map as unknown as { readonly data: { readonly values: string } };
  const read = readValues(JSON.parse(data.values), values);
  assert.deepEqual(read.problems, []);
  const { tag } = read.values;
  assert.deepEqual(read.values, { ...values, tag, imagePullPolicy: "IfNotPresent" });
});

test("values that make no sense are told by their places", () => {
  const { problems } = readValues(
    { global: { proxy: { kind: "x", logLevel: "y" }, imagePullSecrets: 3 }, cni: { enabled: "z" } },
    values,
  );
  assert.deepEqual(problems, [
    'global.proxy.kind is "x", not "tulle" or "envoy"',
    'global.proxy.logLevel is "y", no log level',
    "global.imagePullSecrets is not a list of texts",
    "cni.enabled is not true or false",
  ]);
});
