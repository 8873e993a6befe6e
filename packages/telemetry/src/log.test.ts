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

test("nothing that steers a terminal or turns text gets into a line, of whatever form and wherever it stood", () => {
  const steering = "a\u009b2Jb\u202ec\u001b]0;d\u0007e\u2066f\u0085g";
  for (const sink of [textSink, jsonSink]) {
    const { lines, logging } = collect(sink);
    logging.logger("x").info(steering, { plain: steering, quoted: `two words ${steering}` });
    assert.equal(lines.length, 1);
    // oxlint-disable-next-line no-control-regex -- control characters are what is being looked for
    assert.doesNotMatch(lines[0]!.slice(0, -1), /[\0-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]/);
    assert.match(lines[0]!, /a\\+u009b2Jb\\+u202ec/);
  }
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
