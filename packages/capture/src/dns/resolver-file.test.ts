// resolv.conf changes, goes, comes, and is rubbish while an agent runs.
import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { type LogEntry, Logging } from "@tulle/telemetry";
import { ManualClock } from "@tulle/timing/testing";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { ResolverFile } from "./resolver-file.ts";

const folder = temporaryFolder("tulle-resolver-");
let made = 0;

function follow() {
  made += 1;
  const file = path.join(folder, `resolv-${made}.conf`);
  const clock = new ManualClock();
  const entries: LogEntry[] = [];
  const logging = new Logging({ sink: (entry) => void entries.push(entry) });
  const resolver = new ResolverFile({ path: file, clock, log: logging.logger("dns") });
  const servers = (): string => resolver.settings().servers.join(" ");
  const later = (): string => {
    clock.pass(1000);
    return servers();
  };
  const warnings = (): number => entries.filter(({ level }) => level === "warning").length;
  return { file, resolver, servers, later, warnings };
}

test("what the file says now is taken, within a second", () => {
  const { file, resolver, servers, later } = follow();
  writeFileSync(file, "nameserver 10.0.0.1\nsearch a.example\n");
  assert.equal(servers(), "10.0.0.1");
  writeFileSync(file, "nameserver 10.0.0.2\nnameserver fd00::2\nsearch b.example\n");
  assert.equal(servers(), "10.0.0.1", "not looked at again yet");
  assert.equal(later(), "10.0.0.2 fd00::2");
  assert.deepEqual(resolver.settings().searchDomains, ["b.example"]);
  writeFileSync(`${file}.new`, "nameserver 10.0.0.3\n");
  renameSync(`${file}.new`, file);
  assert.equal(later(), "10.0.0.3");
});

test("without a file this machine is asked, until there is one; a file that goes leaves what it said", () => {
  const { file, servers, later, warnings } = follow();
  symlinkSync(`${file}.stub`, file);
  assert.equal(servers(), "127.0.0.1");
  assert.equal(later(), "127.0.0.1");
  assert.equal(warnings(), 1, "said once");
  writeFileSync(`${file}.stub`, "nameserver 10.0.0.1\n");
  assert.equal(later(), "10.0.0.1");
  rmSync(`${file}.stub`);
  assert.equal(later(), "10.0.0.1");
  assert.equal(warnings(), 2);
});

for (const [what, make] of [
  ["a folder", (file: string) => mkdirSync(file)],
  ["far too long", (file: string) => writeFileSync(file, "nameserver 6.6.6.6\n".repeat(10_000))],
] as const) {
  test(`a file that is ${what} says nothing`, () => {
    const { file, servers, warnings } = follow();
    make(file);
    assert.equal(servers(), "127.0.0.1");
    assert.equal(warnings(), 1);
  });
}
