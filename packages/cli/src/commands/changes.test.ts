// The timeline of changes as a person reads it, on a wide terminal and a narrow one.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChangesResponse } from "@tulle/config/api";
import { changesText } from "./changes.ts";

const answer: ChangesResponse = {
  changes: [
    {
      id: 1,
      time: "2026-11-24T18:00:01.000Z",
      kind: "VirtualService",
      namespace: "shop",
      name: "catalog",
      type: "modified",
      file: "shop.yaml:12",
      fields: [
        { path: "spec.http[0].route[0].weight", before: "90", after: "10" },
        { path: "spec.http[0].timeout", after: '"1s\u009b"' },
      ],
      moreFields: 3,
      findings: ["IST0101"],
    },
    {
      id: 2,
      time: "2026-11-24T18:00:02.000Z",
      kind: "Namespace",
      namespace: "",
      name: "other",
      type: "deleted",
      fields: [],
      moreFields: 0,
      findings: [],
    },
  ],
  platformChanges: 4,
  proxies: { connected: 5, inSync: 4 },
};

for (const { columns, expected } of [
  {
    columns: undefined,
    expected: `2026-11-24 18:00:01Z  VirtualService shop/catalog modified, shop.yaml:12
  spec.http[0].route[0].weight: 90 → 10
  spec.http[0].timeout: (none) → "1s\\u009b"
  and 3 more
  findings: IST0101
2026-11-24 18:00:02Z  Namespace other deleted, over the API
4 of 5 proxies have everything that was sent.
`,
  },
  {
    columns: 40,
    expected: `2026-11-24 18:00:01Z  VirtualService
    shop/catalog modified, shop.yaml:12
  spec.http[0].route[0].weight: 90 → 10
  spec.http[0].timeout: (none) →
    "1s\\u009b"
  and 3 more
  findings: IST0101
2026-11-24 18:00:02Z  Namespace other
    deleted, over the API
4 of 5 proxies have everything that was
sent.
`,
  },
]) {
  test(`changes in ${columns ?? "any number of"} columns`, () => assert.equal(changesText(answer, columns), expected));
}
