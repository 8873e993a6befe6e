// The entry of a machine whose network swallows everything: no stream ends, and nothing is told any more.
import assert from "node:assert/strict";
import { test } from "node:test";
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

test("who says nothing for 30 s is not well, and has no entry after the grace; one word brings it back", async (t) => {
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
  const entries = new MachineEntries({ store, register, graceMs: 10_000, clock, log });
  t.after(() => entries.close());
  const health = () => store.list("WorkloadEntry", "shop").map(({ status }) => status?.conditions?.[0]?.reason);
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
