// Which webhook the API server asks for a pod, by its own rules for labels.
import assert from "node:assert/strict";
import { test } from "node:test";
import { askedBy } from "./asked-webhooks.ts";

const configuration = {
  metadata: { name: "tulle-sidecar-injector", labels: { app: "sidecar-injector", "tulle.io/rev": "default" } },
  webhooks: [
    {
      name: "namespace",
      rules: [{ resources: ["pods"] }],
      namespaceSelector: { matchExpressions: [{ key: "tulle-injection", operator: "In", values: ["enabled"] }] },
      objectSelector: {
        matchExpressions: [{ key: "sidecar.tulle.io/inject", operator: "NotIn", values: ["false"] }],
      },
    },
  ],
};

for (const { name, namespaceLabels, podLabels, by } of [
  {
    name: "a namespace that says so",
    namespaceLabels: { "tulle-injection": "enabled" },
    podLabels: {},
    by: /namespace's tulle-injection=enabled/,
  },
  { name: "a namespace that says nothing", namespaceLabels: {}, podLabels: {}, by: undefined },
  {
    name: "a pod that says no",
    namespaceLabels: { "tulle-injection": "enabled" },
    podLabels: { "sidecar.tulle.io/inject": "false" },
    by: undefined,
  },
]) {
  test(`${name}: ${by === undefined ? "it is not asked" : "it is asked"}`, () => {
    const asked = askedBy(configuration, { namespaceLabels, podLabels });
    assert.equal(asked.isAsked, by !== undefined);
    assert.match(asked.by, by ?? /^$/);
  });
}
