// Whom a rejection's text blames.
import assert from "node:assert/strict";
import { test } from "node:test";
import { rejectedNames, rejectionMessage } from "./rejected-names.ts";

const cases = [
  {
    name: "Envoy's text for a listener",
    message: "Error adding/updating listener(s) 10.0.0.1_8080: cannot bind '10.0.0.1:8080': Address already in use\n",
    names: ["10.0.0.1_8080", "10.0.0.1_80", "0.0.0.1_8080"],
    expected: ["10.0.0.1_8080"],
  },
  {
    name: "Envoy's text for two clusters",
    message: "Error adding/updating cluster(s) outbound|80||a.b: no, outbound|80|v1|a.b: no either",
    names: ["outbound|80||a.b", "outbound|80|v1|a.b", "outbound|80||a", "a.b"],
    expected: ["outbound|80||a.b", "outbound|80|v1|a.b"],
  },
  { name: "a name at the end of a sentence", message: "unknown route r1.", names: ["r1", "r"], expected: ["r1"] },
  { name: "a name in quotes", message: "route 'r1' is bad", names: ["r1"], expected: ["r1"] },
  { name: "none", message: "out of memory", names: ["a", ""], expected: [] },
];

for (const { name, message, names, expected } of cases) {
  test(name, () => assert.deepEqual(rejectedNames(message, names), expected));
}

test("Tulle's own text names its resources, and is bounded", () => {
  const errors = Array.from({ length: 1_000 }, (_, index) => ({ name: `listener-${index}`, message: "cannot bind" }));
  const message = rejectionMessage("LDS", errors);
  assert.ok(message.startsWith("Error adding/updating listener(s) listener-0: cannot bind, listener-1: cannot bind"));
  assert.equal(message.length, 4096);
  assert.deepEqual(rejectedNames(message, ["listener-1", "listener-999"]), ["listener-1"]);
});
