// A machine stops being well, moves, loses power and comes back, loses its control plane, and leaves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { MachineStage } from "./machine-stage.ts";

test("a machine leaves as soon as it is not well, moves, loses power and comes back, stops, and leaves", async (t) => {
  const stage = await MachineStage.open({ options: ["--machine-grace", "1s"] });
  t.after(() => stage[Symbol.asyncDispose]());
  const ledger = await stage.machine("ledger");
  const payroll = await stage.machine("payroll");
  await ledger.join(await stage.token("ledger"));
  await payroll.join(await stage.token("payroll"));
  await ledger.waitUntil("healthy");
  await payroll.waitUntil("healthy");
  const reaches = async (): Promise<boolean> => (await payroll.call("http://ledger.internal/")).endsWith(" 200");
  const isAway = async (): Promise<boolean> => (await payroll.call("http://ledger.internal/")).endsWith(" 503");
  await waitFor(reaches, { what: "ledger by name" });
  const name = (await ledger.status())?.name;

  await ledger.stopProgram();
  await ledger.waitUntil("unhealthy");
  await waitFor(isAway, { what: "nobody to be sent there" });
  await ledger.startProgram("127.0.0.1");
  await waitFor(reaches, { what: "the program again" });

  await ledger.moveTo(7);
  await ledger.waitUntil("healthy");
  await waitFor(reaches, { what: "ledger at its new address" });
  const moved = await ledger.status();
  assert.deepEqual([moved?.name, moved?.entry], [name, "ledger-10.66.1.7"]);

  // Power is lost: nothing of it says a word.
  ledger.agent!.kill("SIGKILL");
  await waitFor(isAway, { what: "traffic to leave" });
  await stage.waitForEntries(["payroll-10.66.2.2"]);
  await ledger.join(undefined);
  await waitFor(reaches, { what: "ledger, by what it has kept" });
  assert.equal((await ledger.status())?.name, name);

  await stage.killControlPlane();
  assert.ok(await reaches());
  await stage.startControlPlane();
  await ledger.waitUntil("healthy");
  await stage.waitForEntries(["ledger-10.66.1.7", "payroll-10.66.2.2"]);
  assert.ok(await reaches());

  await ledger.agent!.stop();
  await stage.waitForEntries(["payroll-10.66.2.2"]);
  await ledger.join(undefined);
  await waitFor(reaches, { what: "ledger again" });
  const left = await ledger.run(...stage.tulleOn(ledger, "leave"));
  assert.equal(left.code, 0, left.stderr);
  assert.equal(left.stdout, `${name} has left.\n`);
  await stage.waitForEntries(["payroll-10.66.2.2"]);
  assert.equal((await ledger.agent!.exited).code, 0);
  // Said once, and nothing else: neither that a pod is not there, nor that it has come back to the control plane.
  assert.doesNotMatch(ledger.output, /there is no pod|connected to the control plane[^]*connected to/);
  assert.equal(ledger.output.match(/has left the mesh, or was removed: it ends/g)?.length, 1);
  const again = await ledger.join(undefined);
  assert.notEqual((await again.exited).code, 0);
  assert.match(again.output(), /has not joined/);

  // What root has kept there the proxy's user could not read.
  const captured = await ledger.run("env", ...stage.tulleWords, "join", "--state", ledger.stateFolder, "--capture");
  assert.notEqual(captured.code, 0);
  assert.match(captured.stderr, /belongs to user 0, and the agent would run as user 1337/);
});
