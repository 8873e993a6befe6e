// When a freeze holds.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RolloutFreeze } from "@tulle/config";
import { frozenReason } from "./freeze.ts";

const base = { enabled: false, timeZone: "UTC" };
/** Friday evening to Saturday morning. */
const night: RolloutFreeze = { ...base, windows: [{ days: ["Fri"], from: "18:00", to: "06:00" }] };
const weekend: RolloutFreeze = { ...base, windows: [{ days: ["Sat", "Sun"], from: "00:00", to: "24:00" }] };
const once: RolloutFreeze = { ...base, windows: [{ start: "2026-12-24T00:00:00Z", end: "2026-12-27T00:00:00Z" }] };

const rows: readonly {
  readonly freeze: RolloutFreeze | undefined;
  readonly at: string;
  readonly expected: RegExp | undefined;
}[] = [
  { freeze: undefined, at: "2026-11-27T20:00:00Z", expected: undefined },
  { freeze: { ...base, enabled: true }, at: "2026-11-27T20:00:00Z", expected: /freeze\.enabled/ },
  { freeze: night, at: "2026-11-27T17:59:59Z", expected: undefined },
  { freeze: night, at: "2026-11-27T18:00:00Z", expected: /from 18:00 to 06:00 \(Fri\), UTC/ },
  { freeze: night, at: "2026-11-28T05:59:59Z", expected: /Fri/ },
  { freeze: night, at: "2026-11-28T06:00:00Z", expected: undefined },
  { freeze: night, at: "2026-11-28T18:00:00Z", expected: undefined },
  { freeze: { ...night, timeZone: "Europe/Vienna" }, at: "2026-11-27T17:00:00Z", expected: /Vienna/ },
  { freeze: weekend, at: "2026-11-28T00:00:00Z", expected: /Sat, Sun/ },
  { freeze: weekend, at: "2026-11-29T23:59:59Z", expected: /Sat, Sun/ },
  { freeze: weekend, at: "2026-11-30T00:00:00Z", expected: undefined },
  { freeze: once, at: "2026-12-23T23:59:59Z", expected: undefined },
  { freeze: once, at: "2026-12-24T00:00:00Z", expected: /until 2026-12-27/ },
  { freeze: once, at: "2026-12-27T00:00:00Z", expected: undefined },
];

for (const { freeze, at, expected } of rows) {
  test(`${JSON.stringify(freeze)} at ${at}`, () => {
    const reason = frozenReason(freeze, Date.parse(at));
    if (expected === undefined) assert.equal(reason, undefined);
    else assert.match(reason ?? "", expected);
  });
}
