// The ways to name a pod, and what is said when they lead to none or to several.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CommandFailure } from "../command/command-failure.ts";
import { choosePod } from "./choose-pod.ts";

const pods = [
  { name: "web-5d8f-abcde", namespace: "shop" },
  { name: "web-5d8f-fghij", namespace: "shop" },
  { name: "web-x-77-klmno", namespace: "shop" },
  { name: "db-1a-pqrst", namespace: "shop" },
  { name: "db-1a-pqrst", namespace: "bank" },
  { name: "old-9-uvwxy", namespace: undefined },
  { name: "api-1-abcde", namespace: "shop", isLeaving: true },
  { name: "api-2-fghij", namespace: "shop" },
  { name: "end-1-abcde", namespace: "shop", isLeaving: true },
];

const cases: readonly { text: string; namespace?: string; expected: string | RegExp; told?: RegExp }[] = [
  { text: "web-5d8f-abcde", expected: "web-5d8f-abcde.shop" },
  { text: "web-5d8f-abcde.shop", expected: "web-5d8f-abcde.shop" },
  { text: "pod/web-5d8f-abcde", expected: "web-5d8f-abcde.shop" },
  { text: "web-x", expected: "web-x-77-klmno.shop" },
  { text: "api", expected: "api-2-fghij.shop" },
  { text: "api-1", expected: "api-1-abcde.shop" },
  { text: "end", expected: "end-1-abcde.shop" },
  { text: "web-x.shop", expected: "web-x-77-klmno.shop" },
  { text: "db-1a-pqrst.bank", expected: "db-1a-pqrst.bank" },
  { text: "db.bank", expected: "db-1a-pqrst.bank" },
  { text: "db", namespace: "bank", expected: "db-1a-pqrst.bank" },
  { text: "deploy/web-x", expected: "web-x-77-klmno.shop" },
  { text: "deployment/db.bank", expected: "db-1a-pqrst.bank" },
  { text: "deploy/db", namespace: "shop", expected: "db-1a-pqrst.shop" },
  {
    text: "deploy/web",
    expected: "web-5d8f-abcde.shop",
    told: /^deploy\/web has 2: this is web-5d8f-abcde\.shop$/m,
  },
  { text: "old", namespace: "shop", expected: "old-9-uvwxy." },
  { text: "old.shop", expected: "old-9-uvwxy." },
  {
    text: "web",
    expected: /there is more than one pod web\nSay which:\n {2}web-5d8f-abcde\.shop\n.*fghij\.shop\n.*klmno\.shop$/,
  },
  { text: "db", expected: /there is more than one pod db\nSay which:\n {2}db-1a-pqrst\.bank\n {2}db-1a-pqrst\.shop$/ },
  { text: "wbe", expected: /there is no pod wbe\nPods:\n {2}api-1-abcde\.shop\n/ },
  {
    text: "web",
    namespace: "bank",
    expected: /there is no pod web in the namespace bank\nThere is one in shop: -n shop$/,
  },
  // `old` has left, and only its log is there.
  { text: "nobody", expected: /^(?![^]*old-9)[^]*there is no pod nobody\nPods:\n/ },
  { text: "deploy/we", expected: /there is no pod deploy\/we\nPods:/ },
  { text: "web.nowhere", expected: /there is no pod web\.nowhere\n/ },
];
for (const { text, namespace, expected, told = /^$/ } of cases) {
  test(`${text}${namespace === undefined ? "" : ` -n ${namespace}`}`, () => {
    let said = "";
    const choose = (): string => {
      const pod = choosePod(pods, { text, namespace }, { stderr: (line) => void (said += line) });
      return `${pod.name}.${pod.namespace ?? ""}`;
    };
    if (typeof expected === "string") assert.equal(choose(), expected);
    else {
      assert.throws(choose, (error) => {
        assert.ok(error instanceof CommandFailure);
        assert.match(`${error.message}\n${error.hint}`, expected);
        return true;
      });
    }
    assert.match(said, told);
  });
}

test("a long list is cut", () => {
  const many = Array.from({ length: 25 }, (_, index) => ({ name: `a-${index}`, namespace: "shop" }));
  assert.throws(
    () => choosePod(many, { text: "a" }, { stderr: () => undefined }),
    (error) =>
      error instanceof CommandFailure && error.hint!.split("\n").length === 22 && error.hint!.endsWith("and 5 more"),
  );
});
