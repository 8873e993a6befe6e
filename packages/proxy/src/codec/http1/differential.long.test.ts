// A million random messages through the server codec and llhttp.
import assert from "node:assert/strict";
import { test } from "node:test";
import { randomCuts, randomRequest, seededRandom } from "../../hand-built/random-requests.ts";
import { difference } from "./differential.ts";

const messageCount = 1_000_000;

test("a million messages: nothing is taken that llhttp refuses or reads otherwise", () => {
  const seed = Number(process.env["TULLE_FUZZ_SEED"] ?? Date.now() % 1_000_000_007);
  const random = seededRandom(seed);
  for (let index = 0; index < messageCount; index += 1) {
    const text = randomRequest(random);
    const fault = difference(text, randomCuts(text, random));
    assert.equal(fault, undefined, `seed ${seed}, message ${index}: ${JSON.stringify(text)}`);
  }
});
