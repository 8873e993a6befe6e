// What reaches the file, what happens when it cannot be written, and rotation.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { type LogEntry, Logging, MetricRegistry } from "@tulle/telemetry";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { utf8AsLatin1 } from "../http/header-value.ts";
import { AccessLogFile, AccessLogFiles } from "./access-log-file.ts";

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-access-log-"));
after(() => fs.rmSync(folder, { recursive: true }));

function open(name: string) {
  const entries: LogEntry[] = [];
  const logging = new Logging({ sink: (entry) => entries.push(entry) });
  const metrics = new MetricRegistry();
  const file = new AccessLogFile({ path: path.join(folder, name), log: logging.logger("access_log"), metrics });
  return { file, entries, metrics };
}

const read = (name: string): string => fs.readFileSync(path.join(folder, name), "utf8");

test("lines are appended in order, by themselves after a short while", async () => {
  const { file } = open("a.log");
  file.write("one\n");
  file.write("two\n");
  assert.equal(read("a.log"), "");
  await waitFor(() => read("a.log") === "one\ntwo\n", { what: "the lines in the file" });
  file.write("three\n");
  file.close();
  assert.equal(read("a.log"), "one\ntwo\nthree\n");
});

test("a full buffer is written at once, whole and in order", async () => {
  const { file } = open("b.log");
  const lines = Array.from({ length: 3000 }, (_, index) => `${index} é€ ${"x".repeat(40)}\n`);
  for (const line of lines) file.write(line);
  await waitFor(() => read("b.log").length > 0, { what: "the first write" });
  file.close();
  await waitFor(() => read("b.log").length === lines.join("").length, { what: "all lines" });
  assert.equal(read("b.log"), lines.join(""));
});

test("what heads hold as bytes of UTF-8 is written once, and lines around it stay whole", () => {
  const { file } = open("g.log");
  file.write("GET /\n");
  file.write(`GET ${utf8AsLatin1("/grün/中/🙂")} \xfc\n`);
  file.write("GET /last\n");
  file.close();
  assert.equal(read("g.log"), "GET /\nGET /grün/中/🙂 ü\nGET /last\n");
});

test("after rotation lines go to a new file", () => {
  const { file } = open("c.log");
  file.write("old\n");
  file.flushSync();
  fs.renameSync(path.join(folder, "c.log"), path.join(folder, "c.log.1"));
  file.write("still old\n");
  file.reopen();
  file.write("new\n");
  file.close();
  assert.equal(read("c.log.1"), "old\nstill old\n");
  assert.equal(read("c.log"), "new\n");
});

test("a file that is being written is closed when the write is done, so that its number cannot be another's", async () => {
  const { file } = open("f.log");
  const openFiles = (): string[] =>
    fs.readdirSync("/proc/self/fd").flatMap((number) => {
      try {
        return [path.basename(fs.readlinkSync(`/proc/self/fd/${number}`))];
      } catch {
        return [];
      }
    });
  file.write("z".repeat(70_000));
  fs.renameSync(path.join(folder, "f.log"), path.join(folder, "f.log.1"));
  file.reopen();
  assert.deepEqual(
    openFiles()
      .filter((name) => name.startsWith("f.log"))
      .sort(),
    ["f.log", "f.log.1"],
  );
  await waitFor(() => !openFiles().includes("f.log.1"), { what: "the old file's close" });
  assert.equal(read("f.log.1").length, 70_000);
  file.close();
});

test("a full disk is said once, and what comes on top of the buffer is counted", async () => {
  const entries: LogEntry[] = [];
  const logging = new Logging({ sink: (entry) => entries.push(entry) });
  const metrics = new MetricRegistry();
  const file = new AccessLogFile({ path: "/dev/full", log: logging.logger("access_log"), metrics });
  for (let round = 0; round < 3; round += 1) {
    file.write("lost\n");
    file.flushSync();
  }
  assert.equal(entries.length, 1);
  assert.match(entries[0]!.message, /lost until it can be written again/);
  const block = "y".repeat(1 << 20);
  // The first is on its way to the disk, the second fills the buffer, the third is one too many.
  for (let count = 0; count < 3; count += 1) file.write(block);
  const dropped = [...metrics.allSeries()].find((series) => series.name === "envoy_access_log_file_write_dropped");
  assert.ok(dropped && "value" in dropped.metric && dropped.metric.value === 4);
  file.close();
});

test("one path is one file, and a path that cannot be opened says why", () => {
  const logging = new Logging({ sink: () => {} });
  const files = new AccessLogFiles(logging.logger("access_log"), new MetricRegistry());
  const name = path.join(folder, "d.log");
  assert.equal(files.open(name), files.open(name));
  assert.throws(() => files.open(path.join(folder, "none", "e.log")), { code: "ENOENT" });
  files.closeAll();
});
