// Sorting with pauses gives what sorting at once gives, and has its pauses.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricRegistry } from "@tulle/telemetry";
import { sortedSeries } from "./sorted-series.ts";

for (const count of [0, 1, 255, 256, 257, 600, 5000]) {
  test(`${count} series`, () => {
    const metrics = new MetricRegistry();
    const names: string[] = [];
    for (let index = 0; index < count; index += 1) {
      // No name twice, in no order.
      const statName = `cluster.c${(index * 7919) % 10_007}.n`;
      names.push(statName);
      metrics.counter({ name: "n", labels: { c: statName }, statName });
    }
    metrics.counter({ name: "without_a_name_in_the_tree" });
    const work = sortedSeries(metrics.allSeries(), (_series, name) => !name.includes("7"));
    let pauses = 0;
    let step = work.next();
    for (; step.done !== true; step = work.next()) {
      assert.equal(step.value, "");
      pauses += 1;
    }
    const expected = names.filter((name) => !name.includes("7")).sort();
    assert.deepEqual(
      step.value.map(({ name }) => name),
      expected,
    );
    assert.ok(pauses >= Math.floor(count / 256), String(pauses));
  });
}
