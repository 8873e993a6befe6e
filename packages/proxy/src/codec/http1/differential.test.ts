// The server codec against llhttp on random messages, and properties that hold for every sound message.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { readRequests } from "../../testing/codec-probe.ts";
import { llhttpVerdict } from "../../testing/llhttp-oracle.ts";
import { mutatedEntry } from "../../testing/mutated-corpus.ts";
import { randomCuts, randomRequest, seededRandom } from "../../testing/random-requests.ts";
import { difference } from "../../testing/differential.ts";

test("nothing is taken that llhttp refuses or reads otherwise", () => {
  const random = seededRandom(20_261_120);
  let taken = 0;
  let refused = 0;
  for (let index = 0; index < 20_000; index += 1) {
    const text = randomRequest(random);
    const fault = difference(text, randomCuts(text, random));
    assert.equal(fault, undefined, JSON.stringify(text));
    const { error } = readRequests([Buffer.from(text, "latin1")]);
    if (error === undefined) taken += 1;
    else refused += 1;
  }
  // The generator must keep making both kinds, or the comparison says nothing.
  assert.ok(taken > 4000 && refused > 4000, `${taken} taken, ${refused} refused`);
});

test("what is nearly a known technique is not taken either where llhttp refuses it", () => {
  const random = seededRandom(20_261_121);
  let taken = 0;
  for (let index = 0; index < 20_000; index += 1) {
    const text = mutatedEntry(random);
    assert.equal(difference(text, randomCuts(text, random)), undefined, JSON.stringify(text));
    taken += readRequests([Buffer.from(text, "latin1")]).requests.length;
  }
  // Some changes mend an entry; were there none, the comparison would say nothing.
  assert.ok(taken > 1000, `${taken} taken`);
});

const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/);
const fieldValue = fc.stringMatching(/^[\x21-\x7e]([\x20-\x7e]{0,20}[\x21-\x7e])?$/);
const ownNames =
  /^(host|connection|content-length|transfer-encoding|te|upgrade|keep-alive|proxy-connection|expect|http2-settings)$/i;
const field = fc.tuple(
  token.filter((name) => !ownNames.test(name)),
  fieldValue,
);
const body = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString("latin1"));

test("sound messages come out as they went in, however they are cut", () => {
  const message = fc.record({
    fields: fc.array(field, { maxLength: 8 }),
    body,
    chunkSizes: fc.array(fc.integer({ min: 1, max: 50 })),
  });
  fc.assert(
    fc.property(message, fc.boolean(), fc.integer(), ({ fields, body: content, chunkSizes }, chunked, seed) => {
      const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
      const framing = chunked ? "Transfer-Encoding: chunked\r\n" : `Content-Length: ${content.length}\r\n`;
      const wire = chunked ? chunkedText(content, chunkSizes) : content;
      const text = `POST /x HTTP/1.1\r\nHost: a\r\n${lines}${framing}\r\n${wire}`;
      const twice = text + text;
      const { requests, error } = readRequests(randomCuts(twice, seededRandom(seed)));
      assert.equal(error, undefined);
      assert.equal(requests.length, 2);
      const expected = fields.flatMap(([name, value]) => [name.toLowerCase(), value]);
      for (const request of requests) {
        assert.equal(request.body, content);
        assert.deepEqual(request.headers.slice(0, expected.length), expected);
      }
      assert.equal(llhttpVerdict(Buffer.from(twice, "latin1")).complete.length, 2);
    }),
    { numRuns: 300, seed: 7 },
  );
});

test("bytes at random neither throw nor pass for a request", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const text = Buffer.from(bytes).toString("latin1");
      assert.equal(
        difference(
          text,
          [Buffer.from(bytes)].filter((part) => part.length > 0),
        ),
        undefined,
      );
    }),
    { numRuns: 500, seed: 7 },
  );
});

function chunkedText(content: string, sizes: readonly number[]): string {
  let text = "";
  let position = 0;
  for (let index = 0; position < content.length; index += 1) {
    const part = content.slice(position, position + (sizes[index] ?? 100));
    text += `${part.length.toString(16)}\r\n${part}\r\n`;
    position += part.length;
  }
  return `${text}0\r\n\r\n`;
}
