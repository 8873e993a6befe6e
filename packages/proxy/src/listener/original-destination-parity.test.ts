// Connections that the kernel redirects to a listener, against stock Envoy with the same bootstrap: which listener and
// which chain takes each, and which addresses it has there. Each proxy is in a network namespace of the test's own.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { debianTool } from "../../../../tests/tools/debian-tool.ts";
import { envoyPath } from "../../../../tests/tools/envoy-path.ts";
import { startProcess } from "../../../../tests/tools/processes.ts";
import { runCommand } from "../../../../tests/tools/run-command.ts";
import { ToolUnavailable } from "../../../../tests/tools/tool-unavailable.ts";
import { redirectedDials, type RedirectedAnswers } from "../testing/redirected-dials.ts";

const program = new URL("../testing/redirected-stage.ts", import.meta.url).pathname;

async function answersOf(proxy: "ours" | "envoy"): Promise<RedirectedAnswers> {
  const command = ["--net", "--", process.execPath, program, proxy];
  await using stage = await startProcess("unshare", command, { name: `the stage of ${proxy}`, group: true });
  const [line] = await stage.waitForOutput(/^\{.*\}$/m);
  await stage.exited;
  return JSON.parse(line) as RedirectedAnswers;
}

let ours: RedirectedAnswers;
let envoys: RedirectedAnswers;

before(async () => {
  await debianTool("iproute2");
  await debianTool("nftables");
  await envoyPath();
  if ((await runCommand("unshare", ["--net", "--", "true"])).code !== 0) {
    throw new ToolUnavailable("a network namespace", "it takes root to make one; run this test as root");
  }
  [ours, envoys] = await Promise.all([answersOf("ours"), answersOf("envoy")]);
});

for (const { name, host, port, expected } of redirectedDials) {
  test(`${name}: ${host} port ${port}`, () => {
    assert.equal(envoys[`${host} ${port}`], expected, "Envoy");
    assert.equal(ours[`${host} ${port}`], expected, "this proxy");
  });
}
