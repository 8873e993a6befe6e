// ClientHellos with bytes changed, inserted and taken away, as long as the time allows: the reader never throws, nor
// do fingerprints; it never names more than was sent, and does not change its mind when more bytes come.
import assert from "node:assert/strict";
import { test } from "node:test";
import { changedBytes } from "../../../testing/mutated-corpus.ts";
import { seededRandom } from "../../../testing/random-requests.ts";
import { extension, helloFrom, inRecordsOf, serverName, versions } from "../../../testing/made-hello.ts";
import { ClientHelloReader } from "./client-hello.ts";
import { ja3Fingerprint, ja4Fingerprint } from "./hello-fingerprints.ts";

const longestMs = 20_000;
const helloCount = 300_000;
/** A machine that is busy gets through fewer. */
const enough = 10_000;
const hellosPerLook = 500;

const alpn = extension(16, Buffer.from("\0\x0c\x02h2\x08http/1.1", "latin1"));
const whole = helloFrom({
  sessionBytes: 32,
  extensions: Buffer.concat([serverName(Buffer.from("shop.example")), alpn, versions(0x0304, 0x0303)]),
});
const hellos = [whole, inRecordsOf(whole, 7), helloFrom({}), helloFrom({ extensions: versions(0x0304) })];

test("changed hellos", (t) => {
  const seed = Number(process.env["TULLE_FUZZ_SEED"] ?? Date.now() % 1_000_000_007);
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const endMs = performance.now() + longestMs;
  const seen = { hello: 0, incomplete: 0, other: 0 };
  let index = 0;
  while (index < helloCount && (index % hellosPerLook > 0 || performance.now() < endMs)) {
    const text = changedBytes(hellos[index % hellos.length]!.toString("latin1"), random);
    const bytes = Buffer.from(text, "latin1");
    const outcome = new ClientHelloReader().read(bytes);
    seen[outcome.type] += 1;
    const where = `seed ${seed}, hello ${index}: ${bytes.toString("hex")}`;
    if (outcome.type === "hello") {
      const named = outcome.serverName.length + outcome.applicationProtocols.join("").length;
      assert.ok(named < bytes.length, where);
      assert.match(ja3Fingerprint(outcome), /^[0-9a-f]{32}$/, where);
      assert.match(ja4Fingerprint(outcome), /^t[01]\d[di]\d{4}[0-9A-Za-z]{2}_[0-9a-f]{12}_[0-9a-f]{12}$/, where);
    }
    const before = new ClientHelloReader().read(bytes.subarray(0, Math.floor(random() * bytes.length)));
    if (before.type !== "incomplete") assert.deepEqual(before, outcome, where);
    index += 1;
  }
  t.diagnostic(`${index} hellos: ${JSON.stringify(seen)}`);
  assert.ok(index >= enough, `${index} hellos in ${longestMs} ms`);
  assert.ok(seen.hello > 0 && seen.incomplete > 0 && seen.other > 0);
});
