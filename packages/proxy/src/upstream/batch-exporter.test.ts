// Batches on their way to a collector: when they leave, over which protocol, and what a collector costs that is down,
// slow or answers rubbish.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Counter, type LogEntry, Logging, otlpEnvelope, otlpMethods, ProtobufWriter } from "@tulle/telemetry";
import type { Cluster } from "../cluster/cluster.ts";
import { Slot } from "../runtime/slot.ts";
import { handBuiltCluster } from "../testing/hand-built-runtime.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { until } from "../testing/running-proxy.ts";
import { type CollectorAnswer, TraceCollector } from "../testing/trace-collector.ts";
import { DataPath } from "../worker/data-path.ts";
import { hostPool } from "./host-pool.ts";
import { defaultExportLimits, type ExportLimits, BatchExporter, BatchExporters } from "./batch-exporter.ts";
import type { ExportOutcome } from "./export-result.ts";

interface Stage {
  readonly collector: TraceCollector;
  readonly exporter: BatchExporter;
  readonly clock: ManualClock;
  readonly sent: Counter;
  readonly dropped: Counter;
  readonly timerFlushed: Counter;
  readonly outcomes: Readonly<Record<ExportOutcome, Counter>>;
  readonly log: LogEntry[];
}

async function startExporter(
  t: TestContext,
  protocol: "grpc" | "http",
  limits: Partial<ExportLimits> = {},
  isKnown = true,
): Promise<Stage> {
  const collector = new TraceCollector();
  const { httpPort, grpcPort } = await collector.start();
  const clock = new ManualClock();
  const log: LogEntry[] = [];
  const logging = new Logging({ sink: (entry) => log.push(entry) });
  const dataPath = new DataPath({ logging, random: () => 0, clock });
  const port = protocol === "grpc" ? grpcPort : httpPort;
  const cluster = handBuiltCluster("collector", [port], protocol === "grpc" ? { protocol: "HTTP/2" } : {});
  const slot = new Slot<Cluster>("collector");
  if (isKnown) slot.current = cluster;
  t.after(() => {
    for (const host of cluster.hosts) hostPool(host, cluster, dataPath).destroy();
    dataPath.timers.stop();
    collector.close();
  });
  const [sent, dropped, timerFlushed] = [new Counter(), new Counter(), new Counter()];
  const outcomes = { sent: new Counter(), refused: new Counter(), failed: new Counter(), no_cluster: new Counter() };
  const timeoutMs = 1000;
  const target = { clusterName: "collector", authority: "collector", metadata: [], maxMessageBytes: undefined };
  const exporter = new BatchExporter(
    {
      items: "spans",
      collector:
        protocol === "grpc"
          ? { protocol, cluster: slot, target, path: otlpMethods.traces, timeoutMs }
          : {
              protocol,
              cluster: slot,
              scheme: "http",
              authority: "collector.test",
              path: "/v1/traces",
              headers: [["content-type", "application/x-protobuf"]],
              timeoutMs,
            },
      limits: { ...defaultExportLimits, ...limits },
      envelope: otlpEnvelope({ resource: [["service.name", "svc"]], scope: { name: "tulle", version: "1" } }),
      stats: { sent, dropped, timerFlushed, outcomes },
    },
    dataPath,
  );
  return { collector, exporter, clock, sent, dropped, timerFlushed, outcomes, log };
}

function item(name: string): Buffer {
  const writer = new ProtobufWriter();
  const start = writer.begin(2);
  writer.text(5, name);
  writer.end(start);
  return Buffer.from(writer.written);
}

/** What ends by a time-out alone. */
const silent: ReadonlySet<CollectorAnswer> = new Set(["late", "hints", "goaway"]);

const numbers = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => String(from + index));

for (const protocol of ["grpc", "http"] as const) {
  test(`${protocol}: a batch leaves when it is full, the rest at its time`, async (t) => {
    const { collector, exporter, clock, sent, dropped, timerFlushed } = await startExporter(t, protocol, {
      batchItems: 3,
    });
    for (const name of numbers(0, 4)) exporter.add(item(name));
    await until(
      () => sent.value === 3,
      () => "the first batch",
    );
    assert.equal(timerFlushed.value, 0);
    clock.advance(defaultExportLimits.flushIntervalMs + 100);
    await until(
      () => sent.value === 4,
      () => "the second batch",
    );
    assert.deepEqual(
      collector.spans.map(({ name }) => name),
      numbers(0, 4),
    );
    assert.deepEqual(collector.spans[3]!.resource, { "service.name": "svc" });
    assert.deepEqual([collector.requests.length, timerFlushed.value, dropped.value], [2, 1, 0]);
  });

  const failures: readonly { readonly answer: CollectorAnswer; readonly outcome: ExportOutcome }[] = [
    { answer: "unavailable", outcome: "refused" },
    { answer: "reset", outcome: "failed" },
    { answer: "garbage", outcome: "failed" },
    { answer: "late", outcome: "failed" },
    { answer: "endless", outcome: "failed" },
    { answer: "cut", outcome: "failed" },
    { answer: "hints", outcome: "failed" },
    { answer: "goaway", outcome: "failed" },
  ];
  for (const { answer, outcome } of failures) {
    test(`${protocol}: a collector that is ${answer} costs its batch, and the next one arrives`, async (t) => {
      const { collector, exporter, clock, sent, dropped, outcomes, log } = await startExporter(t, protocol, {
        batchItems: 2,
        maxItems: 3,
      });
      collector.answer = answer;
      for (const name of numbers(0, 2)) exporter.add(item(name));
      // Of what comes meanwhile three are kept and one is dropped.
      for (const name of numbers(2, 6)) exporter.add(item(name));
      assert.equal(dropped.value, 1);
      await until(
        () => collector.requests.length === 1,
        () => "the request",
      );
      collector.answer = "good";
      if (silent.has(answer)) clock.advance(1100);
      await until(
        () => sent.value === 3,
        () => `sent ${sent.value}, dropped ${dropped.value}`,
      );
      assert.deepEqual([dropped.value, outcomes[outcome].value, outcomes.sent.value], [3, 1, 1]);
      assert.deepEqual(
        collector.spans.slice(-3).map(({ name }) => name),
        numbers(2, 5),
      );
      clock.advance(11_000);
      for (const name of numbers(6, 8)) exporter.add(item(name));
      await until(
        () => sent.value === 5,
        () => `sent ${sent.value}`,
      );
      assert.deepEqual(
        log.map(({ message }) => message),
        ["spans are lost", "spans arrive again"],
      );
      assert.notEqual(log[0]!.fields!["reason"], "");
    });
  }

  test(`${protocol}: what a collector takes and then rejects is lost`, async (t) => {
    const { collector, exporter, sent, dropped, log } = await startExporter(t, protocol, { batchItems: 2 });
    collector.answer = "partial";
    for (const name of numbers(0, 4)) exporter.add(item(name));
    await until(
      () => dropped.value === 2,
      () => "the answers",
    );
    assert.deepEqual([sent.value, collector.requests.length], [2, 2]);
    assert.deepEqual(
      log.map(({ message, fields }) => [message, fields!["reason"]]),
      [["spans are lost", "the collector has rejected 1"]],
    );
  });

  test(`${protocol}: at the end what waits follows what is under way`, async (t) => {
    const { collector, exporter, sent } = await startExporter(t, protocol, { batchItems: 2 });
    for (const name of numbers(0, 3)) exporter.add(item(name));
    await exporter.finish();
    assert.deepEqual([sent.value, collector.requests.length], [3, 2]);
    await exporter.finish();
  });

  test(`${protocol}: a cluster that is not there`, async (t) => {
    const { exporter, dropped, outcomes } = await startExporter(t, protocol, { batchItems: 1 }, false);
    exporter.add(item("0"));
    await until(
      () => dropped.value === 1,
      () => "the outcome",
    );
    assert.equal(outcomes.no_cluster.value, 1);
  });
}

test("an item that is begun and not ended is in no batch", async (t) => {
  const { collector, exporter, sent } = await startExporter(t, "http", { batchItems: 3 });
  const begin = (name: string): void => exporter.beginItem().raw(item(name));
  begin("0");
  begin("1");
  exporter.endItem();
  begin("2");
  exporter.add(item("3"));
  begin("4");
  exporter.flush();
  await until(
    () => sent.value === 2,
    () => "the batch",
  );
  assert.deepEqual(
    collector.spans.map(({ name }) => name),
    ["1", "3"],
  );
});

test("bytes are bounded as items are", async (t) => {
  const { exporter, dropped, sent } = await startExporter(t, "http", { maxBytes: 100 });
  exporter.add(item("x".repeat(200)));
  assert.equal(dropped.value, 1);
  // More than half of it is sent at once.
  exporter.add(item("x".repeat(60)));
  await until(
    () => sent.value === 1,
    () => "the batch",
  );
});

test("equal settings share an exporter, and what nobody can send for is dropped", () => {
  const exporters = new BatchExporters();
  const [sent, dropped] = [new Counter(), new Counter()];
  const cluster = new Slot<Cluster>("collector");
  const settings = () =>
    ({
      items: "spans",
      collector: { protocol: "http", cluster, scheme: "http", authority: "", path: "/", headers: [], timeoutMs: 0 },
      limits: defaultExportLimits,
      envelope: (items: Buffer) => items,
      stats: { sent, dropped },
    }) as const;
  const first = exporters.get("a", settings);
  assert.equal(exporters.get("a", settings), first);
  assert.notEqual(exporters.get("b", settings), first);
  // A cluster that has gone and come again has another slot; the one before is empty for ever.
  const again = () => ({ ...settings(), collector: { ...settings().collector, cluster: new Slot<Cluster>("a") } });
  const second = exporters.get("a", again);
  assert.notEqual(second, first);
  first.add(item("0"));
  exporters.flush();
  assert.equal(dropped.value, 1);
});
