// What callers' retries go by, where a sidecar answers in the place of its application.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inboundReplies } from "./local-replies.ts";
import { retryPolicy } from "./retry-policy.ts";

test("a request that reached no application is one that callers try again by default", () => {
  const [unreached, ...others] = inboundReplies(undefined).mappers;
  assert.deepEqual(others, []);
  assert.ok(unreached);
  const filter = unreached.filter?.filterSpecifier;
  assert.deepEqual(filter?.case === "responseFlagFilter" && filter.value.flags, ["UF"]);
  assert.equal(unreached.statusCode, undefined, "503 stays 503");
  const added = unreached.headersToAdd.map(({ header }) => [header?.key, header?.value]);
  const unavailable = "14";
  assert.deepEqual(added, [["grpc-status", unavailable]]);
  assert.ok(retryPolicy(undefined)?.retryOn.split(",").includes("unavailable"));
});
