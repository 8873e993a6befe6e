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
import { MachineRegister, type SavedMachine } from "./machine-register.ts";

const machine: SavedMachine = {
  name: "ledger-1",
  namespace: "shop",
  group: "ledger",
  serviceAccount: "ledger",
  addresses: [],
  address: "10.9.0.4",
  hostname: "box",
  tokenId: "token",
  joinedMs: 0,
  certificates: {},
};

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
  const texts = { read: async () => undefined, write: async () => undefined, placeOf: () => "nowhere" };
  const register = await MachineRegister.open(texts);
  register.setMachine(machine);
  const clock = new ManualClock();
  const log = new Logging({ level: "off" }).logger("machines");
  const health = () => store.list("WorkloadEntry", "shop").map(({ status }) => status?.conditions?.[0]?.reason);
  const begin = (): MachineEntries => {
    const entries = new MachineEntries({ store, register, graceMs: 10_000, clock, log });
    t.after(() => entries.close());
    return entries;
  };
  return { health, begin, clock };
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
