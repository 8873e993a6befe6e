// A machine's systemd, as process 1 of namespaces of the test's own, runs the unit that `tulle join --systemd` writes:
// at once, after the agent was killed, and after the machine has lost power.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { SystemdMachine } from "../tools/systemd-machine.ts";
import { answerOf, MachineStage } from "./machine-stage.ts";

test("the unit starts, starts again after a kill and with its machine, and ends as the machine leaves", async (t) => {
  const stage = await MachineStage.open({ options: ["--machine-grace", "1s"] });
  t.after(() => stage[Symbol.asyncDispose]());
  const ledger = await stage.machine("ledger");
  const payroll = await stage.machine("payroll");
  await payroll.join(await stage.token("payroll"));
  const folder = path.join(stage.folder, "system");
  await mkdir(folder);
  const machine = await SystemdMachine.start(folder, ledger.network);
  t.after(() => machine[Symbol.asyncDispose]());
  const tulle = (...args: readonly string[]) =>
    machine.run("env", ...stage.tulleWords, ...args, "--state", ledger.stateFolder);
  const reaches = async (): Promise<boolean> => (await payroll.call("http://ledger.internal/")).endsWith(" 200");

  const { code, stdout, stderr } = await tulle("join", "--token", await stage.token("ledger"), "--systemd");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^It runs as tulle\.service: systemctl status tulle$/m);
  await waitFor(reaches, { what: "ledger by name" });
  assert.equal(answerOf(await payroll.call("http://ledger.internal/")).name, "ledger");
  const verified = await machine.run("systemd-analyze", "verify", "/etc/systemd/system/tulle.service");
  assert.deepEqual([verified.code, verified.stderr], [0, ""]);

  const first = await machine.mainProcess("tulle");
  await machine.run("kill", "-KILL", first);
  await waitFor(async () => !["0", first].includes(await machine.mainProcess("tulle")), { what: "another process" });
  await ledger.waitUntil("healthy");
  await waitFor(reaches, { what: "ledger by name" });

  await machine.losePower();
  await stage.waitForEntries(["payroll-10.66.2.2"]);
  await machine.begin();
  await ledger.waitUntil("healthy");
  await waitFor(reaches, { what: "ledger by name after the restart of its machine" });

  await machine.run("systemctl", "stop", "tulle");
  await stage.waitForEntries(["payroll-10.66.2.2"]);
  await machine.run("systemctl", "start", "tulle");
  await waitFor(reaches, { what: "ledger by name once more" });
  const left = await tulle("leave");
  assert.equal(left.code, 0, left.stderr);
  const state = async (): Promise<string> => (await machine.run("systemctl", "is-active", "tulle")).stdout.trim();
  await waitFor(async () => (await state()) === "inactive", { what: "the unit to end" });
  // Without a token it cannot be started, and is not tried again and again.
  await machine.run("systemctl", "start", "tulle");
  await waitFor(async () => (await state()) === "failed", { what: "the unit to fail" });
  const { stdout: tries } = await machine.run("systemctl", "show", "--property=NRestarts", "--value", "tulle");
  assert.equal(tries.trim(), "0");
});
