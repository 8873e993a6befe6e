// Files keep every byte that injection does not have to change, and what is made of them is what the webhook makes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDocuments } from "@tulle/config";
import { injectPod } from "../inject-pod.ts";
import { defaultValues } from "../values.ts";
import { withoutEdits } from "../../testing/without-edits.ts";
import { type InjectedText, injectText, type TextInjection } from "./inject-text.ts";

const settings: TextInjection = {
  mesh: {},
  values: defaultValues("1.0.0"),
  namespace: "shop",
  namespaceLabels: new Map(),
};

const inject = (text: string, more: Partial<TextInjection> = {}): InjectedText =>
  injectText(text, "app.yaml", { ...settings, ...more });

const deployment = `# The shop's catalog
apiVersion: apps/v1
kind: Deployment
metadata:
  name: catalog   # as its Service
  namespace: shop
spec:
  selector: {matchLabels: {app: catalog}}
  template:
    metadata:
      labels:
        app: "catalog"
        # above the version
        version: 'v1'
    spec:
      containers:
        - name: main   # the application
          image: app:1
          ports:
            - containerPort: 8080
              name: http
          readinessProbe:
            httpGet:
              path: /ready # quick
              port: http
`;

/** `inserts`: whether nothing is replaced. */
const texts: readonly { readonly name: string; readonly text: string; readonly inserts?: false }[] = [
  { name: "a Deployment with comments and a probe", text: deployment, inserts: false },
  { name: "with line ends of Windows", text: deployment.replaceAll("\n", "\r\n"), inserts: false },
  { name: "with a byte order mark", text: `\uFEFF${deployment}`, inserts: false },
  { name: "without a line end at its end", text: deployment.trimEnd(), inserts: false },
  {
    name: "lists that are not indented",
    text: "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  initContainers:\n  - name: i\n    image: i\n  containers:\n  - name: a\n    image: a\n",
  },
  { name: "a Pod without metadata", text: "kind: Pod\napiVersion: v1\nspec:\n  containers:\n  - name: a\n" },
  { name: "empty metadata", text: "kind: Pod\napiVersion: v1\nmetadata:\nspec:\n  containers:\n  - name: a\n" },
  {
    name: "empty metadata behind a comment",
    text: "kind: Pod\napiVersion: v1\nmetadata: # none\nspec:\n  containers:\n  - name: a\n",
  },
  {
    name: "metadata that is null",
    text: "kind: Pod\napiVersion: v1\nmetadata: ~\nspec:\n  containers:\n  - name: a\n",
    inserts: false,
  },
  {
    name: "empty labels and volumes",
    text: "kind: Pod\nmetadata:\n  labels: {}\n  annotations:\nspec:\n  volumes: []\n  containers:\n  - name: a\n",
    inserts: false,
  },
  {
    name: "flow style",
    text: "kind: Pod\nmetadata: {name: a, labels: {app: a,}}\nspec: { containers: [ {name: a}, ], volumes: [{name: v, emptyDir: {}} ] } # end\n",
  },
  {
    name: "flow style over lines",
    text: "kind: Pod\nmetadata: {\n  name: a, # its name\n}\nspec: {\n  containers: [\n    { name: a }\n  ]\n}\n",
  },
  {
    name: "JSON",
    text: '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","livenessProbe":{"tcpSocket":{"port":80}}}]}}',
    inserts: false,
  },
  {
    name: "JSON with indentation",
    text: `${JSON.stringify({ kind: "Pod", metadata: { labels: { a: "b" } }, spec: { initContainers: [{ name: "i" }], containers: [{ name: "a" }] } }, null, 2)}\n`,
  },
  {
    name: "several documents",
    text: `---\nkind: Service\nspec: {}\n---\n# nothing\n---\n${deployment}---\nkind: Pod\nspec:\n  containers:\n  - name: a\n...\n`,
    inserts: false,
  },
  {
    name: "a List",
    text: "kind: List\napiVersion: v1\nitems:\n- kind: ConfigMap\n  data: {a: b}\n- kind: Pod\n  spec:\n    containers:\n    - name: a\n- kind: List\n  items:\n  - kind: Pod\n    spec:\n      containers:\n      - name: b\n",
  },
  {
    name: "a PodList",
    text: "kind: PodList\nitems:\n- metadata: {name: a}\n  spec:\n    containers:\n    - name: a\n",
  },
  {
    name: "a CronJob",
    text: "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: report}\nspec:\n  schedule: '0 3 * * *'\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          restartPolicy: Never\n          containers:\n            - name: report\n              args:\n              - |\n                several\n\n                lines\n\n",
  },
  {
    name: "block scalars at the end",
    text: "kind: Pod\nmetadata:\n  annotations:\n    note: |+\n      kept\n\nspec:\n  containers:\n  - name: a\n    args:\n    - >-\n      folded\n      text\n",
  },
  {
    name: "plain texts over several lines",
    text: 'kind: Pod\nmetadata:\n  annotations:\n    note: one\n      two\nspec:\n  containers:\n  - name: a\n    args: ["one\n      two"]\n',
  },
  {
    name: "a tcpSocket probe in block style",
    text: "kind: Pod\nspec:\n  containers:\n  - name: a\n    livenessProbe:\n      tcpSocket:\n        port: 80 # db\n      periodSeconds: 3\n",
    inserts: false,
  },
  {
    name: "a gRPC probe that stands first",
    text: "kind: Pod\nspec:\n  containers:\n  - livenessProbe: { grpc: { port: 80 } }\n    name: a\n",
    inserts: false,
  },
  {
    name: "labels by an alias",
    text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  selector:\n    matchLabels: &labels\n      app: a\n  template:\n    metadata:\n      labels: *labels\n    spec:\n      containers:\n      - name: a\n",
    inserts: false,
  },
  {
    name: "labels that others have by an alias",
    text: "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    metadata:\n      labels: &labels\n        app: a\n    spec:\n      containers:\n      - name: a\n  selector:\n    matchLabels: *labels\n",
    inserts: false,
  },
  {
    name: "probes by an alias",
    text: "kind: Pod\nspec:\n  containers:\n  - name: a\n    livenessProbe: &probe\n      httpGet:\n        port: 80\n        path: /a\n    readinessProbe: *probe\n",
    inserts: false,
  },
  {
    name: "a merge",
    text: "x: &base\n  labels:\n    app: a\nkind: Pod\nmetadata:\n  <<: *base\n  name: a\nspec:\n  containers:\n  - name: a\n",
  },
  {
    name: "a container of its own for the proxy",
    text: "kind: Pod\nspec:\n  containers:\n  # the proxy\n  - name: tulle-proxy\n    image: auto\n    resources:\n      limits: {memory: 1Gi}\n  - name: a\n",
    inserts: false,
  },
  {
    name: "metrics",
    text: "kind: Pod\nmetadata:\n  annotations:\n    prometheus.io/port: \"9102\" # own\n    prometheus.io/scrape: 'true'\nspec:\n  containers:\n  - name: a\n",
    inserts: false,
  },
  {
    name: "a list in a list's line",
    text: "kind: List\nitems:\n-   kind: Pod\n    spec:\n        containers:\n        -   name: a\n            image: b\n",
  },
];

for (const { name, text, inserts = true } of texts) {
  test(`every other byte stays: ${name}`, () => {
    const { text: injected, edits, findings, workloads } = inject(text);
    assert.deepEqual(findings, []);
    assert.ok(injected !== undefined);
    assert.ok(workloads.some(({ result }) => result.outcome === "injected"));
    assert.equal(withoutEdits(injected, text, edits), text);
    assert.equal(
      edits.every(({ length }) => length === 0),
      inserts,
      JSON.stringify(edits.filter(({ length }) => length > 0)),
    );
    if (text.includes("\r\n")) assert.doesNotMatch(injected, /[^\r]\n/);
    const again = inject(injected);
    assert.equal(again.text, injected, "what is injected stays as it is");
    assert.deepEqual(again.edits, []);
  });
}

test("a file's pod is the webhook's", () => {
  const { text = "" } = inject(deployment);
  const read = (each: string): { metadata: object; spec: object } =>
    (parseDocuments(each, "a").documents[0]!.value as { spec: { template: { metadata: object; spec: object } } }).spec
      .template;
  const result = injectPod({
    pod: read(deployment),
    namespace: { name: "shop", labels: { "tulle-injection": "enabled" } },
    mesh: {},
    values: settings.values,
    workload: { apiVersion: "apps/v1", kind: "Deployment", name: "catalog" },
  });
  assert.equal(result.outcome, "injected");
  assert.deepEqual(read(text), result.pod);
});

test("only what a probe says is replaced", () => {
  const { edits } = inject(deployment);
  const replaced = edits.filter(({ length }) => length > 0);
  assert.deepEqual(
    replaced.map(({ offset, length, text }) => [deployment.slice(offset, offset + length), text]),
    [
      ["/ready", '"/app-health/main/readyz"'],
      ["http", "15020"],
    ],
  );
});

test("what is inserted reads as if a person had written it", () => {
  const { text } = inject("kind: Pod\nspec:\n  containers:\n  - name: a\n", {
    values: { ...settings.values, nativeSidecar: false },
  });
  assert.match(text!, /\n {2}containers:\n {2}- name: tulle-proxy\n {4}image: "tulle\/proxy:1\.0\.0"\n/);
  assert.match(text!, /\n {2}- name: a\n/);
  assert.match(text!, /\nmetadata:\n {2}labels:\n {4}security\.istio\.io\/tlsMode: istio\n/);
  assert.match(text!, /sidecar\.istio\.io\/status: '\{"initContainers"/);
});

test("objects of others stay, and kinds of others that are called alike", () => {
  const text =
    "kind: Deployment\napiVersion: example.org/v1\nspec: {template: {spec: {containers: [{name: a}]}}}\n---\nkind: Service\nspec: {}\n";
  const { text: injected, workloads } = inject(text);
  assert.equal(injected, text);
  assert.deepEqual(workloads, []);
});

test("a refused pod spoils the file: half of one is no help", () => {
  const text =
    "kind: Pod\nmetadata: {name: a, annotations: {sidecar.istio.io/proxyCPU: much}}\nspec: {containers: [{name: a}]}\n---\nkind: Pod\nspec: {containers: [{name: a}]}\n";
  const { text: injected, workloads } = inject(text);
  assert.equal(injected, undefined);
  assert.deepEqual(
    workloads.map(({ name, result }) => [name, result.outcome]),
    [
      ["a", "refused"],
      ["", "injected"],
    ],
  );
});

test("what is no YAML is told with its place", () => {
  const { text, findings } = inject("kind: Pod\nspec: {containers: [\n");
  assert.equal(text, undefined);
  assert.equal(findings[0]?.place?.file, "app.yaml");
});

test("a namespace's own labels count", () => {
  const namespaceLabels = new Map([["shop", { "istio-injection": "disabled" }]]);
  const { text, workloads } = inject(deployment, { namespaceLabels });
  assert.equal(text, deployment);
  assert.equal(workloads[0]?.result.outcome, "passed");
});
