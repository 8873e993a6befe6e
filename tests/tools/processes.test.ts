// Checks the process tools themselves: what is waited for, and what a failure says.
import assert from "node:assert/strict";
import { test } from "node:test";
import { freePorts, startProcess, waitFor } from "./processes.ts";

test("waitFor returns the first truthy value", async () => {
  let looks = 0;
  assert.equal(
    await waitFor(() => (++looks === 3 ? "ready" : undefined), { what: "the third look", intervalMs: 1 }),
    "ready",
  );
});

test("waitFor says what it waited for and why the last look failed", async () => {
  const refused = () => Promise.reject(new Error("connection refused"));
  await assert.rejects(waitFor(refused, { what: "the gateway", timeoutMs: 1, details: () => "its log" }), {
    message: "waited 1 ms for the gateway (connection refused)\nits log",
  });
});

test("startProcess captures both streams and waits for output", async () => {
  await using child = await startProcess(process.execPath, [
    "-e",
    'console.log("port 80"); console.error("warned"); setInterval(() => {}, 1000)',
  ]);
  const match = await child.waitForOutput(/port (\d+)/);
  assert.equal(match[1], "80");
  await child.waitForOutput(/warned/);
  assert.equal(child.stdout(), "port 80\n");
  assert.equal(child.stderr(), "warned\n");
  assert.deepEqual(await child.stop(), { code: null, signal: "SIGTERM" });
});

test("waitForOutput fails as soon as the process has ended", async () => {
  const child = await startProcess(process.execPath, ["-e", 'console.error("bad flag"); process.exit(3)'], {
    name: "tool",
  });
  await assert.rejects(
    child.waitForOutput(/ready/),
    /^Error: tool ended \(exit status 3\) without printing .*\nbad flag/s,
  );
});

test("stop kills a process that ignores SIGTERM", async () => {
  const child = await startProcess(process.execPath, [
    "-e",
    'process.on("SIGTERM", () => {}); console.log("up"); setInterval(() => {}, 1000)',
  ]);
  await child.waitForOutput(/up/);
  assert.deepEqual(await child.stop({ timeoutMs: 1 }), { code: null, signal: "SIGKILL" });
});

test("startProcess rejects for a program that does not exist", async () => {
  await assert.rejects(startProcess("/nonexistent/program", []), /cannot start program: .*ENOENT/);
});

test("freePorts gives different ports", async () => {
  const ports = await freePorts(5);
  assert.equal(new Set(ports).size, 5);
});
