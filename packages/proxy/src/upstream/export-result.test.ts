// What OTLP's answers say, and what the log is told of batches that are lost.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type LogEntry, Logging, ProtobufWriter } from "@tulle/telemetry";
import { ManualClock } from "../testing/manual-clock.ts";
import { DataPath } from "../worker/data-path.ts";
import { ExportTrouble, lostExport, readOtlpAnswer, takenExport } from "./export-result.ts";

function partialSuccess(rejected: bigint, words: string): Buffer {
  const writer = new ProtobufWriter();
  const start = writer.begin(1);
  writer.int(1, rejected);
  writer.text(2, words);
  writer.end(start);
  return Buffer.from(writer.written);
}

const answers: readonly {
  readonly name: string;
  readonly bytes: Buffer;
  readonly rejected: number | undefined;
  readonly reason?: string;
}[] = [
  { name: "nothing", bytes: Buffer.alloc(0), rejected: 0 },
  { name: "an empty partial success", bytes: Buffer.from([0x0a, 0]), rejected: 0 },
  { name: "a warning", bytes: partialSuccess(0n, "soon too many"), rejected: 0 },
  {
    name: "some",
    bytes: partialSuccess(3n, "too old"),
    rejected: 3,
    reason: "the collector has rejected 3: too old",
  },
  { name: "less than none", bytes: partialSuccess(-3n, "?"), rejected: 0 },
  {
    name: "many words",
    bytes: partialSuccess(1n, "x".repeat(50_000)),
    rejected: 1,
    reason: `the collector has rejected 1: ${"x".repeat(200)}`,
  },
  { name: "fields that are not known yet", bytes: Buffer.from([0x7a, 1, 0]), rejected: 0 },
  { name: "rubbish", bytes: Buffer.from("rubbish"), rejected: undefined },
];

for (const { name, bytes, rejected, reason = "" } of answers) {
  test(`an answer of OTLP that says ${name}`, () => {
    const expected = rejected === undefined ? undefined : { outcome: "sent", rejectedItems: rejected, reason };
    assert.deepEqual(readOtlpAnswer(bytes), expected);
  });
}

test("losses are told once, and their end once it has lasted", (t) => {
  const log: LogEntry[] = [];
  const clock = new ManualClock();
  const dataPath = new DataPath({ logging: new Logging({ sink: (each) => log.push(each) }), random: () => 0, clock });
  t.after(() => dataPath.timers.stop());
  const trouble = new ExportTrouble("spans", "collector", dataPath);
  const told = (): readonly unknown[] =>
    log.splice(0).map(({ level, message, fields }) => [level, message, fields?.["reason"]]);
  const pass = (ms: number): void => {
    clock.advance(ms);
    dataPath.turn.run(() => undefined);
  };
  trouble.onResult(takenExport);
  assert.deepEqual(told(), []);
  trouble.onResult(lostExport("failed", "reset"));
  assert.deepEqual(told(), [["error", "spans are lost", "reset"]]);
  for (let second = 0; second < 20; second += 1) {
    pass(1000);
    trouble.onResult(second % 2 === 0 ? takenExport : lostExport("refused", "status 503"));
  }
  assert.deepEqual(told(), []);
  pass(10_000);
  trouble.onResult(takenExport);
  trouble.onResult(takenExport);
  assert.deepEqual(told(), [["info", "spans arrive again", undefined]]);
  trouble.onResult({ outcome: "sent", rejectedItems: 1, reason: "too old" });
  assert.deepEqual(told(), [["error", "spans are lost", "too old"]]);
});
