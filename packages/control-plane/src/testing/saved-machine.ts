// A machine that has joined, for tests of what is kept of it.
import type { SavedMachine } from "../machines/machine-register.ts";

export const savedMachine: SavedMachine = {
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
