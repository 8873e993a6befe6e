// Two pods whose connections the kernel leads through their sidecars, Tulle's proxy and Envoy, by the same control
// plane: unmodified programs reach what they name, over mutual TLS, and nobody goes past it under STRICT.
import assert from "node:assert/strict";
import { test } from "node:test";
import { debianTool } from "../tools/debian-tool.ts";
import { envoyPath } from "../tools/envoy-path.ts";
import { startProcess } from "../tools/processes.ts";
import { runCommand } from "../tools/run-command.ts";
import { ToolUnavailable } from "../tools/tool-unavailable.ts";
import { capturedCalls, type CapturedOutcome, strictCalls } from "./captured-calls.ts";

const program = new URL("./captured-stage.ts", import.meta.url).pathname;

for (const [client, server] of [
  ["tulle", "envoy"],
  ["envoy", "tulle"],
] as const) {
  test(`the caller's sidecar is ${client}, the other one ${server}`, { timeout: 180_000 }, async () => {
    for (const tool of ["iproute2", "nftables", "curl"] as const) await debianTool(tool);
    await envoyPath();
    if ((await runCommand("unshare", ["--net", "--", "true"])).code !== 0)
      throw new ToolUnavailable("a network namespace", "it takes root to make one; run this test as root");
    const command = ["--net", "--", process.execPath, program, client, server];
    await using stage = await startProcess("unshare", command, { name: "the stage", group: true });
    const [line] = await stage.waitForOutput(/^\{.*\}$/m, { timeoutMs: 150_000 });
    await stage.exited;
    const outcome = JSON.parse(line) as CapturedOutcome;
    const expected = [...capturedCalls, ...strictCalls].map(({ name, expected: each }) => [name, each]);
    assert.deepEqual(outcome, Object.fromEntries(expected));
  });
}
