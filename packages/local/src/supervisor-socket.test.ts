// Who may be signalled: the process that listens on the socket in the state directory, as long as it does, and no
// other.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { NotOwn } from "@tulle/identity/own";
import { startProcess, waitFor } from "../../../tests/tools/processes.ts";
import { ToolUnavailable } from "../../../tests/tools/tool-unavailable.ts";
import { FoundSupervisor, SupervisorSocket } from "./supervisor-socket.ts";

async function stateFolder(context: TestContext): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-supervisor-"));
  context.after(() => rm(folder, { recursive: true }));
  return folder;
}

test("the one who listens is found by the kernel's word", async (context) => {
  const folder = await stateFolder(context);
  assert.equal(await FoundSupervisor.find(folder, {}), undefined, "nobody yet");
  const socket = await SupervisorSocket.listen(folder, {}, () => undefined);
  using found = await FoundSupervisor.find(folder, {});
  assert.equal(found?.pid, process.pid);
  assert.equal(await found.isGone(), false);
  socket.close();
  assert.equal(await FoundSupervisor.find(folder, {}), undefined, "and nobody any more");
});

test("who asks gets an answer, and what is no question the end of its connection", async (context) => {
  const folder = await stateFolder(context);
  const long = "x".repeat(300_000);
  const socket = await SupervisorSocket.listen(folder, {}, (asked) => (asked === "nonsense" ? undefined : { asked }));
  context.after(() => socket.close());
  {
    using found = await FoundSupervisor.find(folder, {});
    assert.deepEqual(await found!.ask({ pod: "a" }), { asked: { pod: "a" } });
    assert.deepEqual(await found!.ask("b"), { asked: "b" });
    await assert.rejects(found!.ask("nonsense"), /the supervisor has not answered/);
    await assert.rejects(found!.ask("b"), /the supervisor has not answered/);
  }
  for (const line of ["{", long]) {
    const connection = connect({ path: path.join(folder, "supervisor.sock") });
    // The end of the connection may come before the last of the line.
    connection.on("error", () => undefined).write(`${line}\n`);
    await new Promise((resolve) => connection.resume().once("close", resolve));
  }
});

test("what was left by one that was killed, or lies in its place, is nobody", async (context) => {
  const folder = await stateFolder(context);
  const listening = `require("node:net").createServer(() => {}).listen({ path: process.argv[1] }, () => console.log("ready"))`;
  const socket = path.join(folder, "supervisor.sock");
  await using supervisor = await startProcess(process.execPath, ["-e", listening, socket]);
  await supervisor.waitForOutput(/ready/);
  using found = await FoundSupervisor.find(folder, {});
  assert.equal(found?.pid, supervisor.pid);
  found.signal("SIGKILL");
  await waitFor(() => found.isGone(), { what: "its end" });
  // Its number may be somebody else's from now on: nothing is sent, where kill(2) would fail or hit a stranger.
  await waitFor(() => !found.isConnected, { what: "the end of the connection" });
  found.signal("SIGKILL");
  assert.equal(await FoundSupervisor.find(folder, {}), undefined, "its socket is left, and nobody listens");
  await rm(socket);
  await writeFile(socket, String(process.pid));
  assert.equal(await FoundSupervisor.find(folder, {}), undefined, "a file is no socket");
});

test("another user's process that listens in its place is refused by name, and nothing is sent to it", async (context) => {
  if (process.getuid?.() !== 0) throw new ToolUnavailable("root", "only root may start a program as another user");
  const folder = await stateFolder(context);
  const nobody = 65_534;
  const listening = `process.setgroups([]); process.setgid(${nobody}); process.setuid(${nobody});
    process.on("SIGTERM", () => console.log("signalled"));
    console.log(process.getuid() === ${nobody} ? "ready" : "not another user");`;
  const socket = path.join(folder, "supervisor.sock");
  // The kernel tells whom a process was when it began to listen.
  const opened = `process.seteuid(${nobody}); require("node:net").createServer(() => {}).listen({ path: process.argv[1] }, () => {
    process.seteuid(0); ${listening} });`;
  await chmod(folder, 0o777);
  const other = await startProcess(process.execPath, ["-e", opened, socket]);
  context.after(() => other.stop({ signal: "SIGKILL" }));
  await other.waitForOutput(/^ready/m);
  await chmod(folder, 0o700);
  await assert.rejects(FoundSupervisor.find(folder, {}), (error) => {
    assert.ok(error instanceof NotOwn);
    assert.match(error.message, /is one of user \S+ \(uid 65534\)/);
    return true;
  });
  assert.equal(other.exit, undefined);
  assert.doesNotMatch(other.output(), /signalled/);
});

test("one that ended a moment ago, before anybody could hear of it, is no failure", async (context) => {
  const folder = await stateFolder(context);
  const listening = `require("node:net").createServer(() => {}).listen({ path: process.argv[1] }, () => console.log("ready"))`;
  // A shell waits for it, so that its number is free again without this process's doing.
  const shell = `"$0" -e '${listening}' "$1" & wait`;
  await using family = await startProcess("/bin/sh", [
    "-c",
    shell,
    process.execPath,
    path.join(folder, "supervisor.sock"),
  ]);
  await family.waitForOutput(/ready/);
  using found = await FoundSupervisor.find(folder, {});
  assert.ok(found !== undefined);
  process.kill(found.pid, "SIGKILL");
  const deadline = performance.now() + 10_000;
  while (existsSync(`/proc/${found.pid}`)) assert.ok(performance.now() < deadline, "it is gone");
  assert.ok(found.isConnected, "nobody has heard of it");
  found.signal("SIGTERM");
  assert.equal(await found.isGone(), true);
});
