// Machines join `tulle up --mode namespaces` at a port of its machine, whose pods they reach by its east-west gateway.
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { eastWestGateway, podManifests } from "./machine-pods.ts";
import { answerOf, joinPort, MachineStage, meshAddress } from "./machine-stage.ts";

const spiffe = (account: string): string => `spiffe://cluster.local/ns/shop/sa/${account}`;

for (const host of [meshAddress, "0.0.0.0"]) {
  test(`a pod and a machine that has joined at ${host} call each other by name over mutual TLS`, async (t) => {
    const stage = await MachineStage.open({
      podManifests: podManifests + eastWestGateway({ leadsToControlPlane: false }),
      network: "machines",
      options: ["--join-address", `${host}:${joinPort}`],
    });
    t.after(() => stage[Symbol.asyncDispose]());
    const ledger = await stage.machine("ledger");
    // Where it calls from is seen as it is: no token has to say it.
    await ledger.join(await stage.token("ledger"));
    await ledger.waitUntil("healthy");
    const calls = (): Promise<string> => ledger.call("http://hello.shop.svc.cluster.local/");
    const isCalled = (): Promise<string> => stage.callFrom("hello", "http://ledger.internal/");
    await waitFor(async () => (await calls()).endsWith(" 200"), { what: "the pod", details: () => ledger.output });
    await waitFor(async () => (await isCalled()).endsWith(" 200"), { what: "the machine" });
    assert.deepEqual(answerOf(await calls()), { name: "hello", caller: spiffe("ledger") });
    assert.deepEqual(answerOf(await isCalled()), { name: "ledger", caller: spiffe("default") });
    // The pods reach the port no more than any other of the machine.
    const { code } = await stage.tulle("exec", "hello", "--", "curl", "-sS", "-m", "20", `${meshAddress}:${joinPort}`);
    assert.notEqual(code, 0);
  });
}

test("a port that is taken, or no address of the machine, ends the start with words that say so", async () => {
  const refused = async (address: string): Promise<string> => {
    const opening = MachineStage.open({ podManifests, options: ["--join-address", address] });
    return opening.then(
      () => assert.fail("it starts"),
      (error: Error) => error.message,
    );
  };
  assert.match(await refused("10.66.9.9:15017"), /machines cannot join at 10\.66\.9\.9:15017: EADDRNOTAVAIL/);
  assert.match(await refused("localhost:15017"), /machines cannot join at localhost:15017/);
});
