// What is left of rules where there are no requests.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuthorizationRule } from "@tulle/config";
import { connectionRule } from "./connection-rule.ts";

const empty: AuthorizationRule = { from: [], to: [], when: [] };
const fromAddress = { source: { ipBlocks: ["10.0.0.0/8"] } };
const namespaces = { source: { namespaces: ["shop"], notPrincipals: ["x"] } };

const cases: readonly {
  readonly name: string;
  readonly rule: AuthorizationRule;
  /** For ALLOW; undefined = left out. */
  readonly allow: AuthorizationRule | undefined;
  /** For the other actions. */
  readonly others: AuthorizationRule;
}[] = [
  { name: "everything", rule: {}, allow: empty, others: empty },
  {
    name: "callers and ports",
    rule: { from: [fromAddress, namespaces], to: [{ operation: { ports: ["1"], notPorts: ["2"] } }] },
    allow: { from: [fromAddress, namespaces], to: [{ operation: { ports: ["1"], notPorts: ["2"] } }], when: [] },
    others: { from: [fromAddress, namespaces], to: [{ operation: { ports: ["1"], notPorts: ["2"] } }], when: [] },
  },
  ...(["hosts", "notHosts", "methods", "notMethods", "paths", "notPaths"] as const).map((field) => ({
    name: field,
    rule: { from: [fromAddress], to: [{ operation: { [field]: ["a"], ports: ["1"] } }] },
    allow: undefined,
    others: { from: [fromAddress], to: [{ operation: { ports: ["1"] } }], when: [] },
  })),
  ...(["requestPrincipals", "notRequestPrincipals"] as const).map((field) => ({
    name: field,
    rule: { from: [{ source: { [field]: ["*"] } }] },
    allow: undefined,
    // Whoever calls, as in Istio.
    others: { ...empty, from: [{ source: {} }] },
  })),
  ...["request.headers[x-a]", "request.auth.claims[a][b]", "request.auth.principal", "request.auth.audiences"].map(
    (key) => ({
      name: key,
      rule: {
        when: [
          { key, values: ["a"] },
          { key: "source.ip", values: ["10.0.0.1"] },
        ],
      },
      allow: undefined,
      others: { ...empty, when: [{ key: "source.ip", values: ["10.0.0.1"] }] },
    }),
  ),
  ...["source.principal", "destination.port", "connection.sni", "experimental.envoy.filters.network.x[y]"].map(
    (key) => {
      const rule = { ...empty, when: [{ key, values: ["1"] }] };
      return { name: key, rule, allow: rule, others: rule };
    },
  ),
  {
    name: "an empty list asks for nothing",
    rule: { to: [{ operation: { methods: [], ports: ["1"] } }] },
    allow: { ...empty, to: [{ operation: { ports: ["1"] } }] },
    others: { ...empty, to: [{ operation: { ports: ["1"] } }] },
  },
];

for (const { name, rule, allow, others } of cases) {
  test(`a rule at a port without requests: ${name}`, () => {
    assert.deepEqual(connectionRule(rule, "ALLOW"), allow);
    for (const action of ["DENY", "AUDIT", "CUSTOM"] as const) assert.deepEqual(connectionRule(rule, action), others);
  });
}
