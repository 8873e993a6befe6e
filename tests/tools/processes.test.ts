// Checks the process tools themselves: what is waited for, and what a failure says.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { freeAddressBlock, freePorts, startProcess, waitFor } from "./processes.ts";

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

test("ports are different, and none that the kernel gives to others", async () => {
  const ports = await freePorts(50);
  assert.equal(new Set(ports).size, 50);
  assert.ok(Math.max(...ports) < 32_768, `${Math.max(...ports)}`);
});

test("processes that ask at the same time get different ports", async () => {
  const module = JSON.stringify(path.join(import.meta.dirname, "processes.ts"));
  // Both look at the same ports first.
  const ask = `import { freePorts } from ${module}; Math.random = () => 0; console.log((await freePorts(200)).join(" ") + " all"); setInterval(() => {}, 1000);`;
  const args = ["--input-type=module", "-e", ask];
  await using first = await startProcess(process.execPath, args);
  await using second = await startProcess(process.execPath, args);
  const ports: string[] = [];
  for (const asking of [first, second]) {
    ports.push(...(await asking.waitForOutput(/^(.*) all$/m, { timeoutMs: 60_000 }))[1]!.split(" "));
  }
  assert.equal(new Set(ports).size, 400);
});

test("blocks of addresses are different, and none of an instance's", async () => {
  const blocks = [await freeAddressBlock(), await freeAddressBlock()];
  assert.notEqual(blocks[0], blocks[1]);
  for (const block of blocks) assert.match(block, /^127\.2(?:4\d|5[0-4])\.\d+$/);
});

test("a condition that never ends fails with what was waited for", { timeout: 60_000 }, async () => {
  await assert.rejects(
    waitFor(() => new Promise<boolean>(() => undefined), { what: "an answer", timeoutMs: 20 }),
    /^Error: waited 20 ms for an answer \(waited in vain for the condition to end\)$/,
  );
});
