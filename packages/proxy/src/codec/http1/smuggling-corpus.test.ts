// Each known technique of request smuggling against the server codec, however its bytes are cut, and beside llhttp.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readRequests } from "../../testing/codec-probe.ts";
import { difference } from "../../testing/differential.ts";
import { smugglingCorpus } from "../../testing/smuggling-corpus.ts";

for (const { name, text, expected } of smugglingCorpus) {
  test(name, () => {
    const bytes = Buffer.from(text, "latin1");
    const cuts = [
      [bytes],
      Array.from(bytes, (byte) => Buffer.from([byte])),
      ...Array.from({ length: bytes.length - 1 }, (_, at) => [bytes.subarray(0, at + 1), bytes.subarray(at + 1)]),
    ];
    for (const parts of cuts) {
      const { requests, error } = readRequests(parts);
      const seen = { taken: requests.length, ...(error === undefined ? {} : { error }) };
      assert.deepEqual(seen, expected, `cut behind ${parts[0]!.length} bytes`);
      assert.ok(requests.every(({ path }) => path !== "/smuggled"));
    }
    assert.equal(difference(text, [bytes]), undefined);
  });
}

test("no two entries are the same", () => {
  assert.equal(new Set(smugglingCorpus.map(({ name }) => name)).size, smugglingCorpus.length);
  assert.equal(new Set(smugglingCorpus.map(({ text }) => text)).size, smugglingCorpus.length);
});
