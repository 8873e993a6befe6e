// What `tulle vm list` shows: lines that end, and one empty line between machines and tokens.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MachinesResponse } from "@tulle/config/api";
import { machinesText } from "./vm-list.ts";

const token: MachinesResponse["tokens"][number] = {
  id: "893dca86fed0",
  group: "ledger",
  namespace: "shop",
  state: "unused",
  until: "2026-11-28T13:46:52.614Z",
  addresses: [],
  madeBy: "root",
};
const machine: MachinesResponse["machines"][number] = {
  name: "ledger-700cf6dd",
  namespace: "shop",
  group: "ledger",
  address: "10.0.0.9",
  state: "healthy",
  entry: "ledger-10.0.0.9",
  hostname: "vm",
  joined: "2026-11-28T12:46:55.000Z",
  token: "893dca86fed0",
};

const cases = [
  { name: "nothing", found: { machines: [], tokens: [] }, expected: /^No machine has joined\.\n$/ },
  {
    name: "a token",
    found: { machines: [], tokens: [token] },
    expected: /^No machine has joined\.\n\nTOKEN.*\n893d.*\n$/,
  },
  { name: "a machine", found: { machines: [machine], tokens: [] }, expected: /^MACHINE.*\nledger.* vm\n$/ },
  {
    name: "a machine that has vanished",
    found: { machines: [{ ...machine, state: "disconnected" as const, entry: "" }], tokens: [] },
    expected: /^MACHINE.*\nledger.* disconnected +<none> +vm\n$/,
  },
  {
    name: "both",
    found: { machines: [machine], tokens: [token] },
    expected: /^MACHINE.*\nledger.* vm\n\nTOKEN.*\n893d.*\n$/,
  },
];

for (const { name, found, expected } of cases) {
  test(`machines and tokens: ${name}`, () => {
    assert.match(machinesText({ ...found, events: [] }, undefined), expected);
  });
}
