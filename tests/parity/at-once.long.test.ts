// The calls of the parity tables once more, in a random order and many at once, all to Tulle's proxies: what one of
// them leaves behind in a proxy meets all others. Answers are judged by the tables' own test; here nothing may end, and
// who asks afterwards is answered.
import assert from "node:assert/strict";
import { test } from "node:test";
import { seededRandom } from "../e2e/shop-load.ts";
import type { Call } from "./call.ts";
import { connectionCalls } from "./connection-calls.ts";
import { http2Calls } from "./http2-calls.ts";
import { loopbackCalls } from "./loopback-calls.ts";
import { ParityMesh } from "./parity-mesh.ts";
import { routingCalls } from "./routing-calls.ts";
import { stricterCalls } from "./stricter-calls.ts";

const calls: readonly Call[] = [
  ...routingCalls,
  ...connectionCalls,
  ...http2Calls,
  ...loopbackCalls,
  ...stricterCalls.map(({ call }) => call),
];
const callsInAll = 15_000;
const callsAtOnce = 48;
const seed = 20_261_126;

test("no call of the tables ends a proxy, whatever else is under way", async (context) => {
  const mesh = await ParityMesh.start();
  context.after(() => mesh.stop());
  const random = seededRandom(seed);
  let next = 0;
  let failed = 0;
  const client = async (number: number): Promise<void> => {
    for (let index = next; index < callsInAll; index = next) {
      next += 1;
      const call = calls[Math.floor(random() * calls.length)]!;
      const from = `127.${100 + number}.${(index >> 8) & 255}.${index & 255 || 1}`;
      await mesh.makeCall(call, "tulle", from).catch(() => (failed += 1));
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, (_, number) => client(number)));
  context.diagnostic(`${callsInAll} calls of ${calls.length}, ${failed} without an answer that can be read`);
  for (const role of ["gateway", "outbound"] as const) {
    assert.equal(await mesh.admin(role, "tulle", "/ready"), "LIVE\n", role);
  }
});
