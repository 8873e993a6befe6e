// Answers of back ends, sound ones with a few bytes changed, through the client codec: it never throws, says the same
// however the bytes are cut, and gives no connection to another request on which an answer was not whole.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readResponse } from "../../testing/codec-probe.ts";
import { changedBytes } from "../../testing/mutated-corpus.ts";
import { randomCuts, seededRandom } from "../../testing/random-requests.ts";

const longestMs = 40_000;
const answerCount = 300_000;
/** A machine that is busy gets through fewer. */
const enough = 20_000;
const answersPerLook = 500;

const answers = [
  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
  "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n",
  "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
  "HTTP/1.0 200 OK\r\n\r\nuntil the end",
  "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad",
];

test("changed answers", (t) => {
  const seed = Number(process.env["TULLE_FUZZ_SEED"] ?? Date.now() % 1_000_000_007);
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const endMs = performance.now() + longestMs;
  let index = 0;
  let whole = 0;
  while (index < answerCount && (index % answersPerLook > 0 || performance.now() < endMs)) {
    const text = changedBytes(answers[index % answers.length]!, random);
    const ended = random() < 0.5;
    const inOne = readResponse([Buffer.from(text, "latin1")], { ended });
    const inParts = readResponse(randomCuts(text, random), { ended });
    assert.deepEqual(inParts.response, inOne.response, `seed ${seed}, answer ${index}: ${JSON.stringify(text)}`);
    assert.equal(inParts.reset, inOne.reset, `seed ${seed}, answer ${index}: ${JSON.stringify(text)}`);
    // A connection whose answer is not complete, or has something behind it, must not carry another request.
    if (inOne.reusable) assert.ok(inOne.response !== undefined && inOne.reset === undefined, JSON.stringify(text));
    if (inOne.response !== undefined) whole += 1;
    index += 1;
  }
  t.diagnostic(`${index} answers, ${whole} of them taken`);
  assert.ok(index >= enough, `${index} answers in ${longestMs} ms`);
  assert.ok(whole > index / 50, `${whole} of ${index} were taken`);
});
