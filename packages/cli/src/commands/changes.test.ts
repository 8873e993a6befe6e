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
      file: "/srv/shop/shop.yaml:12",
      fields: [
        { path: "spec.http[0].route[0].weight", before: "90", after: "10" },
        { path: "spec.http[0].timeout", after: '"1s\u009b"' },
      ],
      moreFields: 3,
      findings: ["IST0101"],
      by: "ann (uid 1000)",
      batch: 42,
      proxies: {
        connected: 5,
        inSync: 4,
        refusing: 1,
        tookMs: 124,
        revisions: [
          { virtualHost: "catalog.shop.svc.cluster.local:80", before: "94fc37d32ae9", after: "aa48d963b40d" },
          { virtualHost: "a:80", after: "aa48d963b40d" },
        ],
        moreRevisions: 1,
      },
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
      by: "the token's holder at 127.0.0.1",
      batch: 43,
      proxies: { connected: 5, inSync: 3, refusing: 0 },
    },
    {
      id: 3,
      time: "2026-11-24T18:00:03.000Z",
      kind: "Rollout",
      namespace: "shop",
      name: "catalog",
      type: "added",
      file: "rollouts.yaml:1",
      fields: [],
      moreFields: 0,
      findings: [],
      by: "an edit of the file",
      batch: 44,
      proxies: { connected: 2, inSync: 1, refusing: 0, isCutShort: true },
    },
    {
      id: 4,
      time: "2026-11-24T18:00:04.000Z",
      kind: "",
      namespace: "",
      name: "",
      type: "away",
      away: {
        named: [
          { type: "modified", kind: "Service", namespace: "shop", name: "catalog", file: "/srv/shop/shop.yaml:3" },
          { type: "deleted", kind: "Namespace", namespace: "", name: "other" },
        ],
        more: 7,
      },
      fields: [],
      moreFields: 0,
      findings: ["IST0101"],
    },
  ],
  platformChanges: 4,
  proxies: { connected: 5, inSync: 4 },
};

for (const { columns, expected } of [
  {
    columns: undefined,
    expected: `2026-11-24 18:00:01Z  VirtualService shop/catalog modified, shop.yaml:12
  by ann (uid 1000)
  spec.http[0].route[0].weight: 90 → 10
  spec.http[0].timeout: (none) → "1s\\u009b"
  and 3 more
  findings: IST0101
  revision of catalog.shop.svc.cluster.local:80: 94fc37d32ae9 → aa48d963b40d
  revision of a:80: (none) → aa48d963b40d
  and 1 more
  4 of 5 proxies in sync after 0.12 s, 1 refuses something
2026-11-24 18:00:02Z  Namespace other deleted, over the API
  by the token's holder at 127.0.0.1
  3 of 5 proxies in sync so far
2026-11-24 18:00:03Z  Rollout shop/catalog added, rollouts.yaml:1
  by an edit of the file
  1 of 2 proxies in sync when the control plane ended
2026-11-24 18:00:04Z  changed while the control plane was away: 9 objects
  Service shop/catalog modified, shop.yaml:3
  Namespace other deleted
  and 7 more
  findings: IST0101
4 of 5 proxies have everything that was sent.
`,
  },
  {
    columns: 40,
    expected: `2026-11-24 18:00:01Z  VirtualService
    shop/catalog modified, shop.yaml:12
  by ann (uid 1000)
  spec.http[0].route[0].weight: 90 → 10
  spec.http[0].timeout: (none) →
    "1s\\u009b"
  and 3 more
  findings: IST0101
  revision of
    catalog.shop.svc.cluster.local:80:
    94fc37d32ae9 → aa48d963b40d
  revision of a:80: (none) →
    aa48d963b40d
  and 1 more
  4 of 5 proxies in sync after 0.12 s, 1
    refuses something
2026-11-24 18:00:02Z  Namespace other
    deleted, over the API
  by the token's holder at 127.0.0.1
  3 of 5 proxies in sync so far
2026-11-24 18:00:03Z  Rollout
    shop/catalog added, rollouts.yaml:1
  by an edit of the file
  1 of 2 proxies in sync when the
    control plane ended
2026-11-24 18:00:04Z  changed while the
    control plane was away: 9 objects
  Service shop/catalog modified,
    shop.yaml:3
  Namespace other deleted
  and 7 more
  findings: IST0101
4 of 5 proxies have everything that was
sent.
`,
  },
]) {
  test(`changes in ${columns ?? "any number of"} columns`, () =>
    assert.equal(changesText(answer, { columns, cwd: "/srv/shop" }), expected));
}
