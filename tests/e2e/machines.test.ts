// Machines join by one command, and reach each other by name over mutual TLS. How they move, lose power, come back and
// leave: machines.long.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { answerOf, MachineStage } from "./machine-stage.ts";

const spiffe = (account: string): string => `spiffe://cluster.local/ns/shop/sa/${account}`;

test("two machines join, and call each other by name over mutual TLS", async (t) => {
  const stage = await MachineStage.open();
  t.after(() => stage[Symbol.asyncDispose]());
  const ledger = await stage.machine("ledger");
  const payroll = await stage.machine("payroll");
  await ledger.join(await stage.token("ledger"));
  await payroll.join(await stage.token("payroll"));
  await ledger.waitUntil("healthy");
  await payroll.waitUntil("healthy");
  assert.match(ledger.agent!.output(), /^Programs of this user reach the mesh by HTTP_PROXY=\S+15007$/m);
  for (const [from, to] of [
    [ledger, payroll],
    [payroll, ledger],
  ] as const) {
    const answers = async (): Promise<boolean> => (await from.call(`http://${to.name}.internal/`)).endsWith(" 200");
    await waitFor(answers, { what: `${to.name} by name` });
    const answer = answerOf(await from.call(`http://${to.name}.internal/`));
    assert.deepEqual(answer, { name: to.name, caller: spiffe(from.name) });
  }
});
