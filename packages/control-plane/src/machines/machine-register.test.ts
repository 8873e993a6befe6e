// What is written down of machines: anybody who reaches the port can be refused, and drives out nothing else by it.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MachineEvent } from "@tulle/config/api";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { StateFolder } from "../state/state-folder.ts";
import { savedMachine } from "../testing/saved-machine.ts";
import { MachineRegister, type RegisterTexts, type SavedMachine } from "./machine-register.ts";

const machine: SavedMachine = { ...savedMachine, certificates: { a1: 1 } };
const token = { group: "ledger", namespace: "shop", addresses: [], madeBy: "owner", madeMs: 0, untilMs: 1000 };

/** One text that several write, each over the version that it has read. */
function sharedTexts(): RegisterTexts & { remove(): void; fail(reason: string): void } {
  const listeners = new Set<() => void>();
  let text: string | undefined;
  let version = 0;
  let failure = "";
  const changed = (): void => {
    version += 1;
    for (const listener of listeners) queueMicrotask(listener);
  };
  return {
    readVersion: async () => ({ text, version: String(version) }),
    writeOver: async (_name, next, over) => {
      if (failure !== "") throw new Error(failure);
      if (over !== String(version)) return undefined;
      text = next;
      changed();
      return { version: String(version) };
    },
    placeOf: () => "there",
    follow: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    remove: () => {
      text = undefined;
      changed();
    },
    fail: (reason) => (failure = reason),
  };
}

test("refusals, however many, are bounded by themselves: who joined by which token stays", async () => {
  const state = new StateFolder(temporaryFolder("tulle-register-"), { warning: () => undefined });
  const register = await MachineRegister.open(state);
  const note = (what: MachineEvent["what"], detail: string, peer: string): void =>
    register.note({ time: new Date().toISOString(), what, detail, peer });
  note("token made", "a1 for ledger.shop", "owner");
  note("joined", "ledger-1.shop by the token a1", "10.9.0.4");
  for (let host = 0; host < 2000; host += 1) note("refused", "no token", `fd00::${host.toString(16)}`);
  note("left", "ledger-1.shop", "10.9.0.4");
  await register.change((now) => now.setMachine(machine));
  const { events } = await MachineRegister.open(state);
  const told = events.filter(({ what }) => what !== "refused").map(({ what }) => what);
  assert.deepEqual(told, ["token made", "joined", "left"]);
  assert.equal(events.length - told.length, 200);
  // The newest ones.
  assert.equal(events.at(-2)?.peer, "fd00::7cf");
});

test("two that share a register lose none of each other's machines, and know them", async () => {
  const texts = sharedTexts();
  const [one, two] = [await MachineRegister.open(texts), await MachineRegister.open(texts)];
  let heard = 0;
  two.follow(() => (heard += 1));
  await Promise.all(
    [one, two].flatMap((register, replica) =>
      Array.from({ length: 20 }, (_, index) =>
        register.change((state) => state.setMachine({ ...machine, name: `ledger-${replica}-${index}` })),
      ),
    ),
  );
  await Promise.all([one.refresh(), two.refresh()]);
  assert.deepEqual([one.machines.length, two.machines.length], [40, 40]);
  assert.ok(heard > 0);
  const third = await MachineRegister.open(texts);
  assert.equal(third.machines.length, 40);
});

test("of two that use the same token at once one is told that it is used", async () => {
  const texts = sharedTexts();
  const [one, two] = [await MachineRegister.open(texts), await MachineRegister.open(texts)];
  const made = await one.change((state) => state.addToken(token));
  await two.refresh();
  const use = (register: MachineRegister, usedBy: string): Promise<boolean> =>
    register.change((state) => {
      const there = state.token(made!.id);
      if (there === undefined || there.usedBy !== undefined) return false;
      state.setToken({ ...there, usedBy });
      return true;
    });
  const used = await Promise.all([use(one, "a"), use(two, "b")]);
  assert.deepEqual(used.toSorted(), [false, true]);
  await Promise.all([one.refresh(), two.refresh()]);
  assert.equal(one.token(made!.id)?.usedBy, used[0] ? "a" : "b");
  assert.deepEqual(two.token(made!.id), one.token(made!.id));
});

test("what cannot be kept has not happened, and a register that is removed is written again", async () => {
  const texts = sharedTexts();
  const problems: string[] = [];
  const register = await MachineRegister.open(texts, (reason) => problems.push(reason));
  await register.change((state) => state.setMachine(machine));
  texts.fail("the API server is away");
  register.note({ time: "", what: "refused", detail: "no token", peer: "10.9.0.9" });
  await assert.rejects(
    register.change((state) => state.setMachine({ ...machine, isGone: true })),
    /is away/,
  );
  assert.equal(register.machines.length, 1);
  assert.deepEqual(register.events.length, 1);
  texts.fail("");
  texts.remove();
  await register.refresh();
  assert.equal(register.machines.length, 1);
  assert.match(problems.join(), /is gone: it is written again/);
  await register.change((state) => state.addToken(token));
  const other = await MachineRegister.open(texts);
  assert.deepEqual([other.machines.length, other.tokens.length, other.events.length], [1, 1, 1]);
  assert.equal(other.machineOf("a1")?.name, "ledger-1");
});
