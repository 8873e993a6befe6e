// Levels, names and the two line formats of the log.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging, jsonSink, textSink } from "./log.ts";

function collect(make: typeof textSink): { lines: string[]; logging: Logging } {
  const lines: string[] = [];
  const sink = make((line) => lines.push(line));
  return { lines, logging: new Logging({ sink, nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5, 6) }) };
}

test("a line below its logger's level is not written, and a level changes at once", () => {
  const { lines, logging } = collect(textSink);
  const http = logging.logger("http");
  http.debug("hidden");
  assert.equal(logging.setLevel("http", "debug"), true);
  http.debug("shown", { path: "/a b", status: 200 });
  assert.deepEqual(lines, ['[2026-01-02 03:04:05.006][debug][http] shown path="/a b" status=200\n']);
  assert.equal(logging.setLevel("nobody", "debug"), false);
});

test("setting all levels reaches loggers made later", () => {
  const { lines, logging } = collect(textSink);
  logging.setAllLevels("error");
  logging.logger("later").warning("hidden");
  assert.deepEqual(lines, []);
});

test("a peer cannot forge a second line", () => {
  const { lines, logging } = collect(textSink);
  logging.logger("x").info("a\nb", { host: "c\r\nd" });
  assert.equal(lines[0]!.split("\n").length, 2);
});

test("json lines carry the fields beside the message", () => {
  const { lines, logging } = collect(jsonSink);
  logging.logger("x").info("m", { big: 5n, none: undefined });
  assert.deepEqual(JSON.parse(lines[0]!), {
    time: "2026-01-02T03:04:05.006Z",
    level: "info",
    logger: "x",
    message: "m",
    big: "5",
  });
});
