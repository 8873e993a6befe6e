// Who may be signalled: the process that listens on the socket in the state directory, as long as it does, and no other.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { startProcess, waitFor } from "../../../tests/tools/processes.ts";
import { FoundSupervisor, SupervisorSocket } from "./supervisor-socket.ts";

async function stateFolder(context: TestContext): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-supervisor-"));
  context.after(() => rm(folder, { recursive: true }));
  return folder;
}

test("the one who listens is found by the kernel's word", async (context) => {
  const folder = await stateFolder(context);
  assert.equal(await FoundSupervisor.find(folder, {}), undefined, "nobody yet");
  const socket = await SupervisorSocket.listen(folder, {});
  using found = await FoundSupervisor.find(folder, {});
  assert.equal(found?.pid, process.pid);
  assert.equal(await found.isGone(), false);
  socket.close();
  assert.equal(await FoundSupervisor.find(folder, {}), undefined, "and nobody any more");
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
