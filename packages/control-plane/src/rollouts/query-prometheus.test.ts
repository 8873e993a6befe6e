// What is asked of a Prometheus, and what is made of its answers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { queryPrometheus } from "./query-prometheus.ts";

const address = "http://p.test/base/";
const vector = (...values: readonly string[]): string =>
  JSON.stringify({
    status: "success",
    data: { resultType: "vector", result: values.map((value) => ({ metric: {}, value: [1, value] })) },
  });

const answers: readonly { readonly name: string; readonly text: string; readonly expected: object | RegExp }[] = [
  { name: "one number", text: vector("0.5"), expected: { value: 0.5 } },
  {
    name: "a scalar",
    text: '{"status":"success","data":{"resultType":"scalar","result":[1,"2e1"]}}',
    expected: { value: 20 },
  },
  { name: "no number", text: vector(), expected: { empty: "the query gives 0 numbers, and one is needed" } },
  { name: "two", text: vector("1", "2"), expected: { empty: "the query gives 2 numbers, and one is needed" } },
  { name: "not a number", text: vector("NaN"), expected: { empty: "the query gives NaN" } },
  { name: "too many", text: vector("+Inf"), expected: { empty: "the query gives +Inf" } },
  { name: "an error", text: '{"status":"error","error":"x"}', expected: /no result of a query/ },
  { name: "a range", text: '{"status":"success","data":{"resultType":"matrix","result":[1]}}', expected: /no result/ },
  { name: "a number that is none", text: vector(""), expected: /no result/ },
  { name: "no JSON", text: "<html>", expected: /no result/ },
  { name: "nothing", text: "null", expected: /no result/ },
];

for (const { name, text, expected } of answers) {
  test(name, async () => {
    const asked: string[] = [];
    const found = await queryPrometheus({ address, query: 'up{a="b"} & 1' }, [address], async (url) => {
      asked.push(url);
      return { text };
    });
    assert.deepEqual(asked, ["http://p.test/base/api/v1/query?query=up%7Ba%3D%22b%22%7D%20%26%201"]);
    if (expected instanceof RegExp) assert.match("problem" in found ? found.problem : "", expected);
    else assert.deepEqual(found, expected);
  });
}

test("nobody is asked whom the operator does not list, however alike", async () => {
  for (const allowed of [[], ["http://p.test"], ["http://p.test/base"], ["http://p.test/base/x"]]) {
    const found = await queryPrometheus({ address, query: "up" }, allowed, () => assert.fail("asked"));
    assert.match("problem" in found ? found.problem : "", /does not list http:\/\/p\.test\/base\//);
  }
});

test("one that does not answer", async () => {
  const found = await queryPrometheus({ address, query: "up" }, [address], async () => ({ problem: "refused" }));
  assert.deepEqual(found, { problem: "http://p.test/base/ does not answer: refused" });
});
