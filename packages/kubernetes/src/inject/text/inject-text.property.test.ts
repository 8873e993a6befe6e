// Files of any look: what was inserted cut out, and what was replaced put back, the original remains, byte for byte.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { stringify } from "yaml";
import { tries } from "../../../../../tests/tools/tries.ts";
import { defaultValues } from "../values.ts";
import { withoutEdits } from "../../testing/without-edits.ts";
import { injectText } from "./inject-text.ts";

const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/);
const anyText = fc.oneof(
  name,
  fc.constantFrom(
    "true",
    "on",
    "1",
    "0x1",
    "null",
    "~",
    "",
    "a: b",
    "# no comment",
    "- x",
    "'",
    '"',
    "{}",
    "é",
    "🙂",
    "two\nlines\n",
    " x ",
    "*a",
    "&a",
    "!t",
    "%",
    "@",
    "\t",
  ),
);
const port = fc.integer({ min: 1, max: 14_000 });
const action = fc.oneof(
  fc.record({
    httpGet: fc.record({ path: anyText, port, scheme: fc.constantFrom("HTTP", "HTTPS") }, { requiredKeys: ["port"] }),
  }),
  fc.record({ tcpSocket: fc.record({ port }) }),
  fc.record({ grpc: fc.record({ port, service: anyText }, { requiredKeys: ["port"] }) }),
  fc.record({ exec: fc.record({ command: fc.array(anyText, { maxLength: 3 }) }) }),
);
const probe = fc
  .tuple(action, fc.record({ periodSeconds: port, timeoutSeconds: port }, { requiredKeys: [] }), fc.boolean())
  .map(([what, when, isFirst]) => (isFirst ? { ...what, ...when } : { ...when, ...what }));
const container = fc.record(
  {
    name,
    image: anyText,
    args: fc.array(anyText, { maxLength: 3 }),
    env: fc.uniqueArray(fc.record({ name, value: anyText }), { selector: (each) => each.name, maxLength: 3 }),
    livenessProbe: probe,
    readinessProbe: probe,
    lifecycle: fc.record({ preStop: action }),
  },
  { requiredKeys: ["name"] },
);
const containers = fc.uniqueArray(container, { selector: (each) => each.name, minLength: 1, maxLength: 3 });
const texts = fc.dictionary(name, anyText, { maxKeys: 3, noNullPrototype: true });
const template = fc.record(
  {
    metadata: fc.record({ labels: texts, annotations: texts }, { requiredKeys: [] }),
    spec: fc
      .record(
        {
          containers,
          more: containers,
          volumes: fc.uniqueArray(fc.record({ name }), { selector: (each) => each.name, maxLength: 2 }),
          restartPolicy: fc.constant("Always"),
        },
        { requiredKeys: ["containers"] },
      )
      .map(({ more, ...spec }) => {
        const taken = new Set(spec.containers.map((each) => each.name));
        const init = more?.filter((each) => !taken.has(each.name));
        return init === undefined ? spec : { ...spec, initContainers: init };
      }),
  },
  { requiredKeys: ["spec"] },
);
const workload = fc.oneof(
  template.map((pod) => ({ apiVersion: "v1", kind: "Pod", ...pod })),
  template.map((pod) => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "d" },
    spec: { replicas: 1, template: pod },
  })),
  template.map((pod) => ({ spec: { template: pod, replicas: 1 }, kind: "StatefulSet", apiVersion: "apps/v1" })),
  template.map((pod) => ({
    kind: "CronJob",
    apiVersion: "batch/v1",
    spec: { jobTemplate: { spec: { template: pod } } },
  })),
  fc.record({ kind: fc.constant("ConfigMap"), data: texts }),
);
const object = fc.oneof(
  workload,
  fc.array(workload, { maxLength: 3 }).map((items) => ({ apiVersion: "v1", kind: "List", items })),
);

const styles = fc.record({
  indent: fc.constantFrom(2, 3, 4),
  indentSeq: fc.boolean(),
  collectionStyle: fc.constantFrom("any", "any", "any", "flow" as const),
  defaultStringType: fc.constantFrom("PLAIN", "QUOTE_DOUBLE", "QUOTE_SINGLE" as const),
  lineWidth: fc.constantFrom(0, 20, 80),
});
const file = fc.oneof(
  fc.tuple(object, fc.constantFrom(0, 2, 4)).map(([value, indent]) => JSON.stringify(value, null, indent)),
  fc
    .tuple(fc.array(object, { minLength: 1, maxLength: 3 }), styles)
    .map(([values, style]) =>
      values.map((value) => stringify(value, { ...style, aliasDuplicateObjects: false } as object)).join("---\n"),
    ),
);
const look = fc.record({
  isWindows: fc.boolean(),
  isOpenEnded: fc.boolean(),
  hasMark: fc.boolean(),
  comment: fc.boolean(),
});

test("any file keeps its own bytes", () => {
  let injected = 0;
  fc.assert(
    fc.property(file, look, (made, { isWindows, isOpenEnded, hasMark, comment }) => {
      const commented = comment ? `# a file\n${made}` : made;
      const ended = isOpenEnded ? commented.trimEnd() : commented;
      const text = (hasMark ? "\uFEFF" : "") + (isWindows ? ended.replaceAll("\n", "\r\n") : ended);
      const result = injectText(text, "any.yaml", {
        mesh: {},
        values: defaultValues("1.0.0"),
        namespace: "shop",
        namespaceLabels: new Map(),
      });
      // A block scalar without a line end at its end cannot go on.
      if (result.text === undefined) {
        assert.match(
          JSON.stringify([result.findings, result.workloads]),
          isOpenEnded ? /would be read otherwise/ : /^$/,
        );
        return;
      }
      assert.equal(withoutEdits(result.text, text, result.edits), text);
      injected += result.workloads.length;
    }),
    { numRuns: tries({ short: 40, long: 1000 }) },
  );
  assert.ok(injected > 20);
});
