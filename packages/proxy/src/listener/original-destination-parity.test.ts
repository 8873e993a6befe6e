// Connections that the kernel redirects to a listener, against stock Envoy with the same bootstrap: which listener and
// which chain takes each, which addresses it has there, and where it goes on to. Each proxy is in a network namespace
// of the test's own.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { debianTool } from "../../../../tests/tools/debian-tool.ts";
import { envoyPath } from "../../../../tests/tools/envoy-path.ts";
import { startProcess } from "../../../../tests/tools/processes.ts";
import { runCommand } from "../../../../tests/tools/run-command.ts";
import { ToolUnavailable } from "../../../../tests/tools/tool-unavailable.ts";
import { movedCounters } from "../testing/parity-pair.ts";
import { redirectedDials, type RedirectedOutcome } from "../testing/redirected-dials.ts";

const program = new URL("../testing/redirected-stage.ts", import.meta.url).pathname;

async function outcomeOf(proxy: "ours" | "envoy"): Promise<RedirectedOutcome> {
  const command = ["--net", "--", process.execPath, program, proxy];
  await using stage = await startProcess("unshare", command, { name: `the stage of ${proxy}`, group: true });
  const [line] = await stage.waitForOutput(/^\{.*\}$/m);
  await stage.exited;
  return JSON.parse(line) as RedirectedOutcome;
}

let ours: RedirectedOutcome;
let envoys: RedirectedOutcome;

before(async () => {
  await debianTool("iproute2");
  await debianTool("nftables");
  await envoyPath();
  if ((await runCommand("unshare", ["--net", "--", "true"])).code !== 0) {
    throw new ToolUnavailable("a network namespace", "it takes root to make one; run this test as root");
  }
  [ours, envoys] = await Promise.all([outcomeOf("ours"), outcomeOf("envoy")]);
});

for (const { name, host, port, expected, loopsAtEnvoy } of redirectedDials) {
  test(`${name}: ${host} port ${port}`, () => {
    if (!loopsAtEnvoy) assert.equal(envoys.answers[name], expected, "Envoy");
    assert.equal(ours.answers[name], expected, "this proxy");
  });
}

test("headers that name no address are counted as by Envoy, destinations that there are none as without a host", () => {
  const invalid = "cluster.header.original_dst_host_invalid";
  assert.deepEqual([ours.counters[invalid], envoys.counters[invalid]], [1, 1]);
  assert.deepEqual(movedCounters(ours.counters), {
    [invalid]: 1,
    "cluster.all.upstream_cx_none_healthy": 3,
    "cluster.all.original_dst_loop": 1,
  });
});
