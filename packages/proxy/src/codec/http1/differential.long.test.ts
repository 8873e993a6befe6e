// A million messages, made at random and by changes to known techniques of smuggling, through the server codec and
// llhttp.
import assert from "node:assert/strict";
import { test } from "node:test";
import { mutatedEntry } from "../../testing/mutated-corpus.ts";
import { randomCuts, randomRequest, seededRandom } from "../../testing/random-requests.ts";
import { difference } from "../../testing/differential.ts";

const messageCount = 1_000_000;
/** A machine that is busy with other work gets through fewer of them; the test says how many. */
const longestMs = 240_000;
const enough = 100_000;
const messagesPerLook = 1000;

test("a million messages: nothing is taken that llhttp refuses or reads otherwise", (t) => {
  const seed = Number(process.env["TULLE_FUZZ_SEED"] ?? Date.now() % 1_000_000_007);
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const endMs = performance.now() + longestMs;
  let index = 0;
  while (index < messageCount && (index % messagesPerLook > 0 || performance.now() < endMs)) {
    const text = index % 2 === 0 ? randomRequest(random) : mutatedEntry(random);
    const fault = difference(text, randomCuts(text, random));
    if (fault !== undefined) assert.fail(`seed ${seed}, message ${index}: ${fault}: ${JSON.stringify(text)}`);
    index += 1;
  }
  t.diagnostic(`${index} messages`);
  assert.ok(index >= enough, `${index} messages in ${longestMs} ms`);
});
