// What is written down of machines: anybody who reaches the port can be refused, and drives out nothing else by it.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MachineEvent } from "@tulle/config/api";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { StateFolder } from "../state/state-folder.ts";
import { MachineRegister } from "./machine-register.ts";

test("refusals, however many, are bounded by themselves: who joined by which token stays", async () => {
  const state = new StateFolder(temporaryFolder("tulle-register-"), { warning: () => undefined });
  const register = await MachineRegister.open(state);
  const note = (what: MachineEvent["what"], detail: string, peer: string): void =>
    register.note({ time: new Date().toISOString(), what, detail, peer });
  note("token made", "a1 for ledger.shop", "owner");
  note("joined", "ledger-1.shop by the token a1", "10.9.0.4");
  for (let host = 0; host < 2000; host += 1) note("refused", "no token", `fd00::${host.toString(16)}`);
  note("left", "ledger-1.shop", "10.9.0.4");
  await register.save();
  const { events } = await MachineRegister.open(state);
  const told = events.filter(({ what }) => what !== "refused").map(({ what }) => what);
  assert.deepEqual(told, ["token made", "joined", "left"]);
  assert.equal(events.length - told.length, 200);
  // The newest ones.
  assert.equal(events.at(-2)?.peer, "fd00::7cf");
});
