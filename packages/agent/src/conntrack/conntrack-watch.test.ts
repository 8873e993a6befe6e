// What is said and counted of the kernel's table of connections: its files as they are on this machine, and as they are
// when there is no place left, which a test cannot bring about without taking it from everybody else.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { type LogEntry, Logging, MetricRegistry } from "@tulle/telemetry";
import { ManualClock } from "@tulle/timing/testing";
import { debianTool } from "../../../../tests/tools/debian-tool.ts";
import { NetworkNamespace } from "../../../../tests/tools/network-namespace.ts";
import { readConntrack, watchConntrack } from "./conntrack-watch.ts";

test("it is said once that there is no place, and once that there is, and counted", async (context) => {
  const folder = mkdtempSync(path.join(tmpdir(), "tulle-conntrack-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const proc = (entries: number, ...dropped: readonly number[]): void => {
    mkdirSync(path.join(folder, "sys/net/netfilter"), { recursive: true });
    mkdirSync(path.join(folder, "net/stat"), { recursive: true });
    writeFileSync(path.join(folder, "sys/net/netfilter/nf_conntrack_count"), `${entries}\n`);
    writeFileSync(path.join(folder, "sys/net/netfilter/nf_conntrack_max"), "1000\n");
    const rows = dropped.map((each) => `00000000  0000000a ${each.toString(16).padStart(8, "0")} 00000000\n`);
    writeFileSync(path.join(folder, "net/stat/nf_conntrack"), `entries  clashres drop early_drop\n${rows.join("")}`);
  };
  const entries: LogEntry[] = [];
  const log = new Logging({ level: "info", sink: (entry) => void entries.push(entry) }).logger("agent");
  const clock = new ManualClock();
  const metrics = new MetricRegistry();
  // What was lost before is none of this agent's news.
  proc(10, 5, 0);
  using _watch = watchConntrack({ folder, log, metrics, clock });
  for (const [count, ...dropped] of [
    [899, 5, 0],
    [900, 5, 0],
    [1000, 21, 1],
    [950, 21, 1],
    [850, 21, 1],
    [700, 21, 1],
    [1000, 22, 1],
  ] as const) {
    proc(count, ...dropped);
    await clock.next();
  }
  assert.deepEqual(
    entries.map(({ level, message, fields }) => [level, message.split(" (")[0], fields?.["entries"]]),
    [
      ["warning", "the kernel can hardly track more connections", 900],
      ["error", "new connections are dropped: the kernel can track no more", 1000],
      ["info", "the kernel can track connections again", 700],
      ["error", "new connections are dropped: the kernel can track no more", 1000],
    ],
  );
  const page = [...metrics.pieces({ format: "prometheus" })].join("");
  for (const line of ["entries 1000", "limit 1000", "dropped_total 18"]) {
    assert.ok(page.includes(`tulle_agent_conntrack_${line}\n`), page);
  }
});

test("a network's own connections are counted, of another one none", async () => {
  await debianTool("nftables");
  using network = await NetworkNamespace.create();
  await network.mustRun(
    "nft",
    "add table inet t; add chain inet t c { type nat hook output priority -100; ct state new accept; }",
  );
  const program = `import { readConntrack } from ${JSON.stringify(new URL("./conntrack-watch.ts", import.meta.url).href)};
    import net from "node:net";
    const before = readConntrack().entries;
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const socket = net.connect(server.address().port, "127.0.0.1", () => {
        console.log(before, readConntrack().entries, readConntrack().limit > 0);
        process.exit();
      });
    });`;
  const printed = await network.mustRun(process.execPath, "--input-type=module", "-e", program);
  assert.equal(printed.trim(), "0 1 true");
});

test("where the kernel tracks nothing there is nothing to say", () => {
  assert.equal(readConntrack("/nowhere"), undefined);
});
