// What reaches the file, what happens when it cannot be written, and rotation.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
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

function droppedIn(metrics: MetricRegistry): number {
  const found = [...metrics.allSeries()].find((series) => series.name === "envoy_access_log_file_write_dropped");
  return found && "value" in found.metric ? Number(found.metric.value) : -1;
}

const read = (name: string): string => fs.readFileSync(path.join(folder, name), "utf8");

test("lines are appended in order, by themselves after a short while", async () => {
  const { file } = open("a.log");
  file.write("one\n");
  file.write("two\n");
  assert.equal(read("a.log"), "");
  await waitFor(() => read("a.log") === "one\ntwo\n", { what: "the lines in the file" });
  file.write("three\n");
  await file.close();
  assert.equal(read("a.log"), "one\ntwo\nthree\n");
});

test("a full buffer is written at once, whole and in order", async () => {
  const { file } = open("b.log");
  const lines = Array.from({ length: 3000 }, (_, index) => `${index} é€ ${"x".repeat(40)}\n`);
  for (const line of lines) file.write(line);
  await waitFor(() => read("b.log").length > 0, { what: "the first write" });
  await file.close();
  await waitFor(() => read("b.log").length === lines.join("").length, { what: "all lines" });
  assert.equal(read("b.log"), lines.join(""));
});

test("what heads hold as bytes of UTF-8 is written once, and lines around it stay whole", async () => {
  const { file } = open("g.log");
  file.write("GET /\n");
  file.write(`GET ${utf8AsLatin1("/grün/中/🙂")} \xfc\n`);
  file.write("GET /last\n");
  await file.close();
  assert.equal(read("g.log"), "GET /\nGET /grün/中/🙂 ü\nGET /last\n");
});

test("after rotation lines go to a new file", async () => {
  const { file } = open("c.log");
  file.write("old\n");
  fs.renameSync(path.join(folder, "c.log"), path.join(folder, "c.log.1"));
  file.write("still old\n");
  file.reopen();
  file.write("new\n");
  await file.close();
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
  await file.close();
});

test("a full disk is said once, and what comes on top of the buffer is counted", async () => {
  const entries: LogEntry[] = [];
  const logging = new Logging({ sink: (entry) => entries.push(entry) });
  const metrics = new MetricRegistry();
  const file = new AccessLogFile({ path: "/dev/full", log: logging.logger("access_log"), metrics });
  for (let round = 1; round <= 3; round += 1) {
    file.write("lost\n");
    await waitFor(() => droppedIn(metrics) === round, { what: "the lost line" });
  }
  assert.equal(entries.length, 1);
  assert.match(entries[0]!.message, /lost until it can be written again/);
  const block = "y".repeat(1 << 20);
  // The first is on its way to the disk, the second fills the buffer, the third is one too many.
  for (let count = 0; count < 3; count += 1) file.write(block);
  assert.equal(droppedIn(metrics), 4);
  await file.close();
});

/** By Envoy's names without `filesystem.`. */
function fileStatsOf(metrics: MetricRegistry): Readonly<Record<string, number>> {
  const own = [...metrics.allSeries()].filter(({ statName }) => statName?.startsWith("filesystem.") === true);
  return Object.fromEntries(
    own.map(({ statName, metric }) => [statName!.slice("filesystem.".length), "value" in metric ? +metric.value : -1]),
  );
}

test("what becomes of lines is counted", async () => {
  const { file, metrics } = open("k.log");
  file.write("one\n");
  file.write("grün\n");
  const nothing = { write_completed: 0, write_failed: 0, flushed_by_timer: 0, reopen_failed: 0 };
  assert.deepEqual(fileStatsOf(metrics), { ...nothing, write_buffered: 2, write_total_buffered: 10 });
  await waitFor(() => fileStatsOf(metrics)["write_completed"] === 1, { what: "the write" });
  const written = { ...nothing, write_buffered: 2, write_total_buffered: 0, write_completed: 1, flushed_by_timer: 1 };
  assert.deepEqual(fileStatsOf(metrics), written);
  // A full buffer waits for no timer.
  file.write("z".repeat(70_000));
  await waitFor(() => fileStatsOf(metrics)["write_completed"] === 2, { what: "the second write" });
  fs.rmSync(path.join(folder, "k.log"));
  fs.mkdirSync(path.join(folder, "k.log"));
  file.reopen();
  assert.deepEqual(fileStatsOf(metrics), { ...written, write_buffered: 3, write_completed: 2, reopen_failed: 1 });
  await file.close();
});

test("writes that fail are counted, and wait no more", async () => {
  const metrics = new MetricRegistry();
  const logging = new Logging({ sink: () => {} });
  const file = new AccessLogFile({ path: "/dev/full", log: logging.logger("access_log"), metrics });
  file.write("lost\n");
  await waitFor(() => fileStatsOf(metrics)["write_failed"] === 1, { what: "the failure" });
  assert.equal(fileStatsOf(metrics)["write_total_buffered"], 0);
  await file.close();
});

test("one path is one file, and a path that cannot be opened says why", async () => {
  const logging = new Logging({ sink: () => {} });
  const files = new AccessLogFiles(logging.logger("access_log"), new MetricRegistry());
  const name = path.join(folder, "d.log");
  assert.equal(files.open(name), files.open(name));
  assert.throws(() => files.open(path.join(folder, "none", "e.log")), { code: "ENOENT" });
  await files.closeAll();
});

const make = (command: string, ...args: readonly string[]): void => void execFileSync(command, args);

test("a pipe that nobody reads is refused, and one whose reader is slow loses nothing", async () => {
  const name = path.join(folder, "pipe");
  make("mkfifo", name);
  assert.throws(() => open("pipe"), { code: "ENXIO" });
  const reader = fs.openSync(name, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  const { file, entries } = open("pipe");
  // More than the pipe holds.
  const lines = Array.from({ length: 3000 }, (_, index) => `${index} ${"x".repeat(90)}\n`);
  for (const line of lines) file.write(line);
  let taken = "";
  const chunk = Buffer.alloc(1 << 16);
  const take = (): void => {
    try {
      taken += chunk.toString("latin1", 0, fs.readSync(reader, chunk));
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, "EAGAIN");
    }
  };
  await waitFor(
    () => {
      take();
      return taken.length === lines.join("").length;
    },
    { what: "all lines" },
  );
  assert.equal(taken, lines.join(""));
  assert.deepEqual(entries, []);
  await file.close();
  fs.closeSync(reader);
});

test("the end does not wait for a reader that has stopped: what it does not take is counted", async () => {
  const name = path.join(folder, "stopped");
  make("mkfifo", name);
  const reader = fs.openSync(name, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  const { file, metrics } = open("stopped");
  for (let count = 0; count < 3000; count += 1) file.write(`${"x".repeat(99)}\n`);
  await file.close();
  // The write that is under way learns of the end at its next try.
  await waitFor(() => droppedIn(metrics) > 2000, { what: "the lost lines" });
  fs.closeSync(reader);
});

test("a path that has become a directory keeps its file", async () => {
  const { file, entries } = open("h.log");
  file.write("one\n");
  fs.renameSync(path.join(folder, "h.log"), path.join(folder, "h.log.1"));
  fs.mkdirSync(path.join(folder, "h.log"));
  file.reopen();
  file.write("two\n");
  await file.close();
  assert.equal(read("h.log.1"), "one\ntwo\n");
  assert.match(String(entries[0]!.fields?.["reason"]), /EISDIR/);
});

type WriteEnd = (error: Error | null, written: number) => void;

test("a line that was cut short ends where it was cut", async (t) => {
  const { file, metrics } = open("i.log");
  const write = t.mock.method(fs, "write");
  const fails = (_descriptor: number, _bytes: Buffer, _done: number, end: WriteEnd): void => {
    write.mock.restore();
    end(new Error("no space"), 0);
  };
  const cuts = (descriptor: number, bytes: Buffer, _done: number, end: WriteEnd): void => {
    fs.writeSync(descriptor, bytes, 0, 13);
    write.mock.mockImplementation(fails as unknown as typeof fs.write);
    end(null, 13);
  };
  write.mock.mockImplementation(cuts as unknown as typeof fs.write);
  file.write("GET /one\nGET /two\n");
  file.reopen();
  file.write("GET /three\n");
  await file.close();
  assert.equal(read("i.log"), "GET /one\nGET \nGET /three\n");
  assert.equal(droppedIn(metrics), 1);
});
