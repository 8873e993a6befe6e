// The entries of machines whose network swallows everything, so that no stream ends and nothing is told any more, and
// of those whose streams come back later than their words.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { parseResource } from "@tulle/config";
import { Logging } from "@tulle/telemetry";
import { ManualClock } from "@tulle/timing/testing";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { provenWorld } from "../testing/proven-world.ts";
import { MachineEntries } from "./machine-entries.ts";
import { keeperAnnotation } from "./machine-entry.ts";
import { savedMachine } from "../testing/saved-machine.ts";
import { MachineRegister } from "./machine-register.ts";

const machine = savedMachine;

/** A store with the machine's group; `begin` is a control plane that begins. */
async function world(t: TestContext) {
  const { running } = await provenWorld(t);
  const { store } = running;
  const { resource } = parseResource({
    apiVersion: "networking.istio.io/v1",
    kind: "WorkloadGroup",
    metadata: { name: "ledger", namespace: "shop" },
    spec: { template: {} },
  });
  await store.apply(resource!);
  const none = async () => ({ text: undefined, version: undefined });
  const register = await MachineRegister.open({ readVersion: none, writeOver: none, placeOf: () => "nowhere" });
  await register.change((state) => state.setMachine(machine));
  const clock = new ManualClock();
  const log = new Logging({ level: "off" }).logger("machines");
  const health = () => store.list("WorkloadEntry", "shop").map(({ status }) => status?.conditions?.[0]?.reason);
  const begin = (): MachineEntries => {
    const entries = new MachineEntries({ store, register, graceMs: 10_000, clock, log });
    t.after(() => entries.close());
    return entries;
  };
  const alive = new Set<string>();
  const listeners = new Set<() => void>();
  const replica = (own: string, isLeader = false) => {
    alive.add(own);
    const follow = (listener: () => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    };
    const replicas = { own, isAlive: (name: string) => alive.has(name), follow };
    const leadership = { isLeader, leader: undefined, follow: () => () => undefined };
    const entries = new MachineEntries({ store, register, graceMs: 10_000, clock, log, replicas, leadership });
    t.after(() => entries.close());
    const die = (): void => {
      entries.rest();
      alive.delete(own);
      for (const listener of listeners) listener();
    };
    return { entries, die };
  };
  const keeper = () => store.list("WorkloadEntry", "shop")[0]?.metadata.annotations?.[keeperAnnotation];
  return { health, keeper, begin, replica, clock };
}

test("who says nothing for 30 s is not well, and has no entry after the grace; one word brings it back", async (t) => {
  const { health, begin, clock } = await world(t);
  const entries = begin();
  const stream = {};
  entries.connected(machine, stream);
  await entries.told(machine, true, "");
  clock.pass(29_000);
  // Whatever was begun is done after this.
  await entries.told(machine, true, "");
  assert.deepEqual(health(), ["Ready"]);
  clock.pass(29_999);
  assert.equal(entries.stateOf(machine), "healthy");
  clock.pass(1);
  assert.equal(entries.stateOf(machine), "disconnected");
  await waitFor(() => health().join() === "Disconnected", { what: "nobody to be sent there" });
  clock.pass(10_000);
  await waitFor(() => health().length === 0, { what: "the entry to go" });
  assert.equal(entries.listedAs(machine), "");
  await entries.told(machine, true, "");
  assert.deepEqual([health(), entries.listedAs(machine)], [["Ready"], "ledger-10.9.0.4"]);
});

for (const { name, next, expected } of [
  { name: "its stream comes", next: "stream", expected: ["Ready"] },
  { name: "the grace of the start has passed, whatever it says", next: "grace", expected: [] },
  { name: "it is not well", next: "not well", expected: ["NotReady"] },
] as const) {
  test(`whose word comes before its stream after a restart keeps its entry until ${name}`, async (t) => {
    const { health, begin, clock } = await world(t);
    const earlier = begin();
    earlier.connected(machine, {});
    await earlier.told(machine, true, "");
    await earlier.close();
    const entries = begin();
    for (let word = 0; word < 5; word += 1) {
      await entries.told(machine, true, "");
      assert.deepEqual(health(), ["Ready"]);
      clock.pass(5_000);
    }
    if (next === "stream") entries.connected(machine, {});
    if (next === "grace") clock.pass(5_000);
    if (next === "not well") await entries.told(machine, false, "its disk is full");
    else await waitFor(() => health().join() === expected.join(), { what: "its entry to be as it should" });
    assert.deepEqual(health(), expected);
  });
}

test("of two control planes whoever has a machine's stream keeps its entry; the other one leaves it alone", async (t) => {
  const { health, keeper, replica, clock } = await world(t);
  const [one, two] = [replica("one"), replica("two")];
  const stream = {};
  one.entries.connected(machine, stream);
  await one.entries.told(machine, true, "");
  assert.deepEqual([health(), keeper()], [["Ready"], "one"]);
  // It hears a word by another connection, and starts no grace by it; nor does one that begins.
  await two.entries.told(machine, false, "who knows");
  const three = replica("three");
  clock.pass(20_000);
  await one.entries.told(machine, true, "");
  clock.pass(20_000);
  assert.deepEqual(
    [health(), two.entries.stateOf(machine), three.entries.stateOf(machine)],
    [["Ready"], "healthy", "healthy"],
  );
  // It comes to the other one before the first sees it go.
  two.entries.connected(machine, {});
  await two.entries.told(machine, true, "");
  one.entries.disconnected(machine, stream);
  clock.pass(20_000);
  await two.entries.told(machine, true, "");
  assert.deepEqual([health(), keeper(), one.entries.stateOf(machine)], [["Ready"], "two", "healthy"]);
});

test("what a control plane that is gone has left goes after a while, unless its machine comes to another one", async (t) => {
  const { health, keeper, replica, clock } = await world(t);
  const one = replica("one");
  one.entries.connected(machine, {});
  await one.entries.told(machine, true, "");
  const two = replica("two");
  const leader = replica("leader", true);
  one.die();
  clock.pass(29_999);
  two.entries.connected(machine, {});
  await two.entries.told(machine, true, "");
  clock.pass(1);
  await two.entries.told(machine, true, "");
  assert.deepEqual([health(), keeper()], [["Ready"], "two"]);
  two.die();
  clock.pass(30_000);
  await waitFor(() => health().length === 0, { what: "the entry to go" });
  assert.equal(leader.entries.stateOf(machine), "disconnected");
});

test("a control plane that ends says nothing of its machines", async (t) => {
  const { health, replica } = await world(t);
  const one = replica("one");
  const stream = {};
  one.entries.connected(machine, stream);
  await one.entries.told(machine, true, "");
  one.entries.rest();
  one.entries.disconnected(machine, stream);
  await one.entries.close();
  assert.deepEqual(health(), ["Ready"]);
});
