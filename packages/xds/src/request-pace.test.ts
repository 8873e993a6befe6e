// How fast a stream may ask: what a bootstrap allows, and how often a bad resource is refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RateLimit } from "./ads-client-api.ts";
import { RequestPace } from "./request-pace.ts";
import { resourceType, type ResourceTypeName } from "./resource-types.ts";
import type { SotwRequest } from "./sotw/client-stream.ts";
import { sotwClient } from "./sotw/variant.ts";
import { ManualClock } from "@tulle/timing/testing";

const request = (type: ResourceTypeName, more: Partial<SotwRequest> = {}): SotwRequest => ({
  type: resourceType(type),
  names: [],
  versionInfo: "",
  nonce: "",
  error: undefined,
  first: false,
  ...more,
});

function stage(limit: RateLimit | undefined) {
  const sent: SotwRequest[] = [];
  const pending: number[] = [];
  const clock = new ManualClock();
  const pace = new RequestPace({
    limit,
    clock,
    merge: sotwClient.mergeRequests,
    send: (one) => sent.push(one),
    onPending: (count) => pending.push(count),
  });
  return { pace, sent, pending, advance: (ms: number) => clock.pass(ms) };
}

test("a server that answers each refusal with the same is refused 150 times in five seconds, not thousands", () => {
  const { pace, sent, advance } = stage(undefined);
  for (let ms = 0; ms < 5000; ms += 1) {
    const before = sent.length;
    pace.push(request("CDS", { error: "bad", nonce: String(before) }));
    advance(1);
  }
  assert.ok(sent.length >= 145 && sent.length <= 150, String(sent.length));
});

test("without a limit, what accepts and what asks is sent at once, behind refusals too", () => {
  const { pace, sent } = stage(undefined);
  for (let count = 0; count < 1000; count += 1) pace.push(request("RDS", { nonce: String(count) }));
  assert.equal(sent.length, 1000);
  for (let count = 0; count < 200; count += 1) pace.push(request("CDS", { error: "bad" }));
  pace.push(request("RDS"));
  assert.equal(sent.at(-1)!.type.shortName, "RDS");
});

test("a limit holds for every request; the newest of a type is what waits, and its refusal with it", () => {
  const { pace, sent, pending, advance } = stage({ maxTokens: 1, perSecond: 1 });
  pace.push(request("CDS", { first: true }));
  pace.push(request("LDS", { nonce: "1", error: "bad", names: ["a"] }));
  pace.push(request("LDS", { nonce: "1", names: ["a", "b"] }));
  pace.push(request("RDS"));
  assert.deepEqual([sent.length, pending], [1, [1, 2]]);
  advance(1000);
  assert.deepEqual(sent[1], request("LDS", { nonce: "1", error: "bad", names: ["a", "b"] }));
  advance(1000);
  assert.deepEqual(
    sent.map(({ type }) => type.shortName),
    ["CDS", "LDS", "RDS"],
  );
  assert.equal(pending.at(-1), 0);
});

test("what waits ends with its stream, and a new stream gets no new tokens", () => {
  const { pace, sent, advance } = stage({ maxTokens: 1, perSecond: 1 });
  pace.push(request("CDS"));
  pace.push(request("LDS"));
  pace.clear();
  pace.push(request("CDS", { first: true }));
  pace.push(request("LDS"));
  assert.equal(sent.length, 1);
  advance(1000);
  assert.deepEqual(
    sent.map(({ first }) => first),
    [false, true],
  );
});
