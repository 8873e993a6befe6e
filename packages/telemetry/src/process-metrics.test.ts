// What a process tells of itself moves with what it does.
import assert from "node:assert/strict";
import { closeSync, openSync } from "node:fs";
import { test } from "node:test";
import { MetricRegistry } from "./metrics.ts";
import { ProcessMetrics } from "./process-metrics.ts";

function valueOf(registry: MetricRegistry, metrics: ProcessMetrics, name: string): number {
  metrics.refresh();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(registry.page(undefined).text)?.[1]);
}

const moves: readonly { readonly name: string; readonly use: () => () => void }[] = [
  {
    name: "process_cpu_seconds_total",
    use: () => {
      const { user } = process.cpuUsage();
      while (process.cpuUsage().user - user < 20_000);
      return () => undefined;
    },
  },
  {
    name: "process_resident_memory_bytes",
    use: () => {
      const bytes = Buffer.alloc(64 * 1024 * 1024, 1);
      return () => void bytes.fill(2, 0);
    },
  },
  {
    name: "process_virtual_memory_bytes",
    use: () => {
      const bytes = Buffer.alloc(64 * 1024 * 1024, 1);
      return () => void bytes.fill(2, 0);
    },
  },
  {
    name: "process_open_fds",
    use: () => {
      const opened = Array.from({ length: 20 }, () => openSync("/dev/null", "r"));
      return () => opened.forEach((descriptor) => closeSync(descriptor));
    },
  },
];

for (const { name, use } of moves) {
  test(`${name} moves`, () => {
    const registry = new MetricRegistry();
    const metrics = new ProcessMetrics(registry);
    const before = valueOf(registry, metrics, name);
    const release = use();
    const after = valueOf(registry, metrics, name);
    release();
    assert.ok(after > before, `${before} → ${after}`);
  });
}

test("the begin of the process and its limit of files are told, and names may have a prefix", () => {
  const registry = new MetricRegistry();
  const metrics = new ProcessMetrics(registry, "istio_agent_");
  const startSeconds = valueOf(registry, metrics, "istio_agent_process_start_time_seconds");
  assert.ok(Math.abs(startSeconds - (Date.now() / 1000 - process.uptime())) < 5, String(startSeconds));
  assert.ok(valueOf(registry, metrics, "istio_agent_process_max_fds") > 0);
});
