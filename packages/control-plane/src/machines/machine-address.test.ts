// Where a machine may say that it is, by what its token allows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { addressProblem, isAddressOrRange, plainAddress } from "./machine-address.ts";

const written = [
  { text: "10.9.0.4", expected: true },
  { text: "10.9.0.0/24", expected: true },
  { text: "fd00::/64", expected: true },
  { text: "0.0.0.0/0", expected: true },
  { text: "10.9.0.0/33", expected: false },
  { text: "fd00::/129", expected: false },
  { text: "10.9.0.0/", expected: false },
  { text: "10.9.0.0/24/8", expected: false },
  { text: "10.9.0.0/-1", expected: false },
  { text: "ledger", expected: false },
  { text: "", expected: false },
];
for (const { text, expected } of written) {
  test(`${JSON.stringify(text)} is ${expected ? "" : "no "}address or range`, () =>
    assert.equal(isAddressOrRange(text), expected));
}

const peer = "10.0.0.5";
const claimed = [
  { address: peer, allowed: [], expected: undefined },
  { address: "10.9.0.4", allowed: [], expected: /calls from 10\.0\.0\.5/ },
  { address: "10.9.0.4", allowed: ["10.9.0.4"], expected: undefined },
  { address: "10.9.0.4", allowed: ["10.8.0.1", "10.9.0.0/24"], expected: undefined },
  {
    address: "10.9.1.4",
    allowed: ["10.8.0.1", "10.9.0.0/24"],
    expected: /is for a machine at 10\.8\.0\.1 or 10\.9\.0\.0\/24/,
  },
  { address: peer, allowed: ["10.9.0.0/24"], expected: /not at 10\.0\.0\.5/ },
  { address: "fd00:0:0:0::4", allowed: ["fd00::4"], expected: undefined },
  { address: "fd00::1:4", allowed: ["fd00::/112", "10.9.0.0/24"], expected: /not at fd00::1:4/ },
  { address: "127.0.0.1", allowed: [], expected: /no address that others reach/ },
  { address: "127.0.0.1", allowed: ["127.0.0.1"], expected: undefined },
  { address: "127.0.0.1", allowed: ["0.0.0.0/0"], expected: /not at 127\.0\.0\.1/ },
  { address: "::ffff:127.0.0.1", allowed: ["0.0.0.0/0", "::/0"], expected: /not at ::ffff:127\.0\.0\.1/ },
  { address: "nobody", allowed: ["0.0.0.0/0"], expected: /no IP address/ },
];
for (const { address, allowed, expected } of claimed) {
  test(`a machine at ${address} by a token for ${allowed.join() || "any"}: ${expected === undefined ? "may" : "may not"}`, () => {
    const problem = addressProblem({ address, peer, allowed });
    if (expected === undefined) assert.equal(problem, undefined);
    else assert.match(problem ?? "", expected);
  });
}

for (const [text, plain] of [
  ["FD00:0:0::05", "fd00::5"],
  ["fd00::5%eth0", "fd00::5"],
  ["::ffff:a09:4", "10.9.0.4"],
  ["10.9.0.4", "10.9.0.4"],
  ["nobody", "nobody"],
] as const) {
  test(`${text} is plainly ${plain}`, () => assert.equal(plainAddress(text), plain));
}
