// Random frames through one side of the codec: nothing is thrown, what comes out does not depend on how the bytes are
// cut, and little is written for what was read.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { readHttp2Answers, readHttp2Requests } from "./http2-probe.ts";
import { cutsOf, randomFrames, type Side } from "./random-frames.ts";
import { seededRandom } from "./random-requests.ts";

/** For a frame of nine bytes: a reset, or an answer's head and the end of a connection. */
const writtenPerByte = 5;
const ownFramesBytes = 400;

/** RST_STREAM's length and type. */
const resetFrame = "00000403";

const read = { client: readHttp2Requests, host: readHttp2Answers };

/** @throws where an input breaks the rules, and where one of the three outcomes is hardly ever seen */
export function fuzzFrames(t: TestContext, side: Side, inputCount: number, seed: number): void {
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const outcomes = { message: 0, stream: 0, connection: 0 };
  for (let index = 0; index < inputCount; index += 1) {
    const bytes = randomFrames(side, random);
    const [whole, ...others] = cutsOf(bytes, random).map(read[side]);
    const what = `seed ${seed}, input ${index}: ${bytes.toString("hex")}`;
    for (const other of others) {
      assert.deepEqual({ ...other, writtenBytes: 0 }, { ...whole, writtenBytes: 0 }, what);
    }
    assert.ok(whole!.writtenBytes <= writtenPerByte * bytes.length + ownFramesBytes, what);
    if (whole!.failure !== undefined) outcomes.connection += 1;
    else if (whole!.frames.some((hex) => hex.startsWith(resetFrame))) outcomes.stream += 1;
    else outcomes.message += 1;
  }
  t.diagnostic(JSON.stringify(outcomes));
  for (const [outcome, count] of Object.entries(outcomes)) assert.ok(count > inputCount / 50, outcome);
}
