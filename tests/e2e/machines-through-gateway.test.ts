// A machine that has a way to nothing of the mesh but its east-west gateway: it joins through it, and calls the pods
// behind it, which have networks of their own (`tulle up --mode namespaces`) and call it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { eastWestGateway, podManifests } from "./machine-pods.ts";
import { answerOf, MachineStage, meshAddress } from "./machine-stage.ts";

const spiffe = (account: string): string => `spiffe://cluster.local/ns/shop/sa/${account}`;

test("a machine behind the gateway joins, is called by name, moves, loses power and comes back, and leaves", async (t) => {
  const stage = await MachineStage.open({
    podManifests: podManifests + eastWestGateway({ leadsToControlPlane: true }),
    network: "machines",
    options: ["--join-address", "172.31.255.1:15017", "--join-advertise", `${meshAddress}:15012`],
  });
  t.after(() => stage[Symbol.asyncDispose]());
  const ledger = await stage.machine("ledger", { knows: `${meshAddress}/32` });
  const calls = (): Promise<string> => ledger.call("http://hello.shop.svc.cluster.local/");
  const isCalled = (): Promise<string> => stage.callFrom("hello", "http://ledger.internal/");
  const talkBothWays = async (): Promise<void> => {
    await waitFor(async () => (await calls()).endsWith(" 200"), { what: "the pod", details: () => ledger.output });
    await waitFor(async () => (await isCalled()).endsWith(" 200"), {
      what: "the machine",
      details: () => ledger.output,
    });
    assert.deepEqual(answerOf(await calls()), { name: "hello", caller: spiffe("ledger") });
    assert.deepEqual(answerOf(await isCalled()), { name: "ledger", caller: spiffe("default") });
  };
  const { stdout: pods } = await stage.tulle("get", "pods", "-A", "-o", "wide");
  for (const address of ["172.31.255.1", ...(pods.match(/10\.244\.\d+\.\d+/g) ?? [])]) {
    const { code, stderr } = await ledger.run("ip", "route", "get", address);
    assert.notEqual(code, 0, `${address} has to be out of reach`);
    assert.match(stderr, /unreachable/i);
  }

  // All that the control plane sees of it is the gateway's address: its token says where it may be.
  const elsewhere = await ledger.join(await stage.token("ledger", "10.66.2.0/24"));
  assert.notEqual((await elsewhere.exited).code, 0);
  assert.match(elsewhere.output(), /the token is for a machine at 10\.66\.2\.0\/24, not at 10\.66\.1\.2/);
  await ledger.join(await stage.token("ledger", "10.66.1.0/24"));
  await ledger.waitUntil("healthy");
  await talkBothWays();
  const name = (await ledger.status())?.name;

  await ledger.moveTo(7);
  await ledger.waitUntil("healthy");
  await talkBothWays();
  assert.equal((await ledger.status())?.entry, "ledger-10.66.1.7-machines");

  ledger.agent!.kill("SIGKILL");
  await stage.waitForEntries([]);
  await ledger.join(undefined);
  await talkBothWays();
  assert.equal((await ledger.status())?.name, name);

  const left = await ledger.run(...stage.tulleOn(ledger, "leave"));
  assert.equal(left.stdout, `${name} has left.\n`, left.stderr);
  await stage.waitForEntries([]);
  await waitFor(async () => (await isCalled()).endsWith(" 503"), { what: "nobody to be called" });
});
