// Batches as messages of one long call: how they arrive, what a server costs that hangs, refuses, breaks off or answers
// rubbish, and when the next call is made.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { toBinary, create } from "@bufbuild/protobuf";
import { Counter, Logging, type LogEntry } from "@tulle/telemetry";
import { StreamAccessLogsMessageSchema } from "@tulle/xds/envoy/service/accesslog/v3/als_pb";
import type { Cluster } from "../cluster/cluster.ts";
import { Slot } from "../runtime/slot.ts";
import { AccessLogService, type ServiceBehaviour } from "../testing/access-log-service.ts";
import { handBuiltCluster } from "../testing/hand-built-runtime.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { until } from "../testing/running-proxy.ts";
import { DataPath } from "../worker/data-path.ts";
import { type ExportLimits, BatchExporter } from "./batch-exporter.ts";

interface Stage {
  readonly service: AccessLogService;
  readonly exporter: BatchExporter;
  readonly cluster: Cluster;
  readonly slot: Slot<Cluster>;
  readonly clock: ManualClock;
  readonly sent: Counter;
  readonly dropped: Counter;
  readonly log: LogEntry[];
  /** Paths of what arrived. */
  readonly arrived: () => readonly unknown[];
}

const message = (init: object): Uint8Array =>
  toBinary(StreamAccessLogsMessageSchema, create(StreamAccessLogsMessageSchema, init));

/** As an item of a message: the list's only field, with one entry. */
function entry(path: string): Uint8Array {
  const bytes = message({ logEntries: { case: "httpLogs", value: { logEntry: [{ request: { path } }] } } });
  // Behind tag and length of the list, which are of more than a byte where it is long.
  return bytes.subarray(bytes.length < 130 ? 2 : bytes.length < 16_000 ? 3 : 4);
}

function list(entries: Buffer): Buffer {
  const length = entries.length;
  const head = [0x12];
  let rest = length;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) head.push((rest % 0x80) | 0x80);
  return Buffer.concat([Buffer.from([...head, rest]), entries]);
}

const settledMs = 2100;

async function start(t: TestContext, limits: Partial<ExportLimits> = {}, isKnown = true): Promise<Stage> {
  const service = new AccessLogService();
  const cluster = handBuiltCluster("logs", [await service.start()], { protocol: "HTTP/2" });
  const clock = new ManualClock();
  const log: LogEntry[] = [];
  const logging = new Logging({ sink: (each) => log.push(each) });
  const dataPath = new DataPath({ logging, random: () => 1, clock });
  const slot = new Slot<Cluster>("logs");
  if (isKnown) slot.current = cluster;
  const [sent, dropped] = [new Counter(), new Counter()];
  const target = { clusterName: "logs", authority: "logs", metadata: [], maxMessageBytes: undefined };
  const exporter = new BatchExporter(
    {
      items: "access logs",
      collector: {
        protocol: "grpc_stream",
        cluster: slot,
        target,
        path: "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs",
        opening: message({ identifier: { logName: "log" } }),
      },
      limits: { batchItems: 2, flushIntervalMs: 1000, maxItems: 3, maxBytes: 1 << 20, ...limits },
      envelope: list,
      stats: { sent, dropped },
    },
    dataPath,
  );
  t.after(() => {
    service.close();
    dataPath.timers.stop();
  });
  const arrived = (): readonly unknown[] => service.entries("log").map(({ request }) => request!["path"]);
  return { service, exporter, cluster, slot, clock, sent, dropped, log, arrived };
}

test("all batches are messages of one call, the first with its identifier, and count as sent when it outlives them", async (t) => {
  const { service, exporter, clock, sent, dropped, arrived } = await start(t);
  for (const path of ["/a", "/b"]) exporter.add(entry(path));
  await until(
    () => arrived().length === 2,
    () => "the first batch",
  );
  for (const path of ["/c", "/d"]) exporter.add(entry(path));
  await until(
    () => arrived().length === 4,
    () => "the second batch",
  );
  assert.deepEqual(arrived(), ["/a", "/b", "/c", "/d"]);
  assert.deepEqual(
    service.messages.map(({ call, identifier }) => [call, identifier?.logName]),
    [
      [0, "log"],
      [0, undefined],
    ],
  );
  assert.equal(sent.value, 0);
  clock.advance(settledMs);
  assert.deepEqual([sent.value, dropped.value], [4, 0]);
  exporter.streamSender!.close();
  await until(
    () => service.endedCalls === 1,
    () => "the end of the call",
  );
});

const failures: readonly ServiceBehaviour[] = ["refuses", "resets", "garbage"];
for (const behaviour of failures) {
  test(`a service that ${behaviour} costs its batch, is told once, and is asked again after a while`, async (t) => {
    const { service, exporter, clock, sent, dropped, log, arrived } = await start(t);
    service.behaviour = behaviour;
    for (const path of ["/a", "/b"]) exporter.add(entry(path));
    await until(
      () => dropped.value === 2,
      () => "the lost batch",
    );
    // Of what comes meanwhile a batch waits, the buffer is filled, and one is too many.
    for (const path of ["/c", "/d", "/e", "/f", "/g", "/h"]) exporter.add(entry(path));
    assert.equal(dropped.value, 3);
    assert.equal(service.calls.length, 1);
    service.behaviour = "good";
    clock.advance(600);
    await until(
      () => arrived().length === 5,
      () => arrived().join(),
    );
    assert.deepEqual(arrived(), ["/c", "/d", "/e", "/f", "/g"]);
    clock.advance(settledMs);
    assert.deepEqual([sent.value, dropped.value], [5, 3]);
    assert.deepEqual(
      log.map(({ message: words }) => words),
      ["access logs are lost", "access logs arrive again"],
    );
  });
}

test("a service that reads nothing is given up; meanwhile the buffer is full and what comes on top is counted", async (t) => {
  const { service, exporter, clock, dropped, arrived } = await start(t, { batchItems: 1, maxItems: 3 });
  service.behaviour = "hangs";
  // More than HTTP/2's window and the buffer behind it take.
  const large = "x".repeat(200_000);
  exporter.add(entry(large));
  await until(
    () => service.calls.length === 1,
    () => "the call",
  );
  for (let count = 0; count < 5; count += 1) exporter.add(entry("/more"));
  assert.equal(dropped.value, 2);
  service.behaviour = "good";
  clock.advance(10_100);
  assert.equal(dropped.value, 3);
  clock.advance(600);
  await until(
    () => arrived().length === 3,
    () => "what was kept",
  );
});

for (const [name, end, expected] of [
  ["by the server counts what was just written as sent", () => undefined, [2, 0]],
  ["by the connection counts it as dropped", ({ service }: Stage) => service.breakOff(), [0, 2]],
] as const) {
  test(`the end of a call that is finished, ${name}`, async (t) => {
    const stage = await start(t);
    const { exporter, arrived, sent, dropped } = stage;
    for (const path of ["/a", "/b"]) exporter.add(entry(path));
    await until(
      () => arrived().length === 2,
      () => "the batch",
    );
    const finished = exporter.finish();
    // Before the service has read of the end.
    end(stage);
    await finished;
    assert.deepEqual([sent.value, dropped.value], expected);
  });
}

test("a cluster that is not there yet costs what came, and later batches arrive", async (t) => {
  const { exporter, cluster, slot, service, clock, dropped, arrived } = await start(t, {}, false);
  for (const path of ["/a", "/b"]) exporter.add(entry(path));
  await until(
    () => dropped.value === 2,
    () => "the lost batch",
  );
  slot.current = cluster;
  for (const path of ["/c", "/d"]) exporter.add(entry(path));
  assert.equal(service.calls.length, 0);
  clock.advance(600);
  await until(
    () => arrived().length === 2,
    () => "the second batch",
  );
  assert.deepEqual(arrived(), ["/c", "/d"]);
});

test("a connection that breaks costs what was written just before, and the next call says again who calls", async (t) => {
  const { service, exporter, clock, sent, dropped, arrived } = await start(t);
  for (const path of ["/a", "/b"]) exporter.add(entry(path));
  await until(
    () => arrived().length === 2,
    () => "the first batch",
  );
  clock.advance(settledMs);
  for (const path of ["/c", "/d"]) exporter.add(entry(path));
  await until(
    () => arrived().length === 4,
    () => "the second batch",
  );
  service.breakOff();
  await until(
    () => dropped.value === 2,
    () => "the word of the break",
  );
  for (const path of ["/e", "/f"]) exporter.add(entry(path));
  clock.advance(600);
  await until(
    () => arrived().length === 6,
    () => "the third batch",
  );
  assert.deepEqual(
    service.messages.map(({ call, identifier }) => [call, identifier?.logName]),
    [
      [0, "log"],
      [0, undefined],
      [1, "log"],
    ],
  );
  clock.advance(settledMs);
  assert.deepEqual([sent.value, dropped.value], [4, 2]);
});
