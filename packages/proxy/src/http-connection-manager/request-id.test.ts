// Ids are what RFC 9562 calls UUIDs of version 4, and none comes twice.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newRequestId } from "./request-id.ts";

test("ids are UUIDs of version 4, each another one", () => {
  const ids = Array.from({ length: 1000 }, newRequestId);
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(new Set(ids).size, ids.length);
  // Every digit that is free takes every value.
  const seen = ids.reduce(
    (all, id) => all.map((set, at) => set.add(id[at]!)),
    Array.from({ length: 36 }, () => new Set<string>()),
  );
  assert.deepEqual(
    seen.map(({ size }) => size),
    Array.from(
      "16 16 16 16 16 16 16 16 1 16 16 16 16 1 1 16 16 16 1 4 16 16 16 1 16 16 16 16 16 16 16 16 16 16 16 16".split(
        " ",
      ),
      Number,
    ),
  );
});
