// Who is traced: the id's own word, what headers ask for, and shares drawn from the id.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HeaderMap } from "../http/header-map.ts";
import type { TraceReason } from "./active-span.ts";
import type { SamplingShares } from "./custom-tag.ts";
import { decideTrace, type RequestIdRules } from "./sampling.ts";

/** Its first digits are 5 parts of ten thousand. */
const id = (digit: string): string => `00000005-0000-${digit}000-8000-000000000000`;
const all: SamplingShares = { client: 10_000, random: 10_000, overall: 10_000 };
const none: SamplingShares = { ...all, random: 0 };
const usual: RequestIdRules = { packsReason: true, samplesById: true };

const cases: readonly {
  readonly name: string;
  readonly id?: string;
  readonly headers?: readonly string[];
  readonly shares?: SamplingShares;
  readonly rules?: Partial<RequestIdRules>;
  readonly random?: number;
  readonly reason: TraceReason;
  /** The id that goes on, if not the one that came. */
  readonly packed?: string;
}[] = [
  { name: "all", id: id("4"), reason: "sampling", packed: id("9") },
  { name: "none", id: id("4"), shares: none, reason: "not_traceable" },
  {
    name: "a share above what is drawn",
    id: id("4"),
    shares: { ...all, random: 6 },
    reason: "sampling",
    packed: id("9"),
  },
  { name: "a share below it", id: id("4"), shares: { ...all, random: 5 }, reason: "not_traceable" },
  { name: "decided before", id: id("9"), shares: none, reason: "sampling" },
  { name: "forced before", id: id("a"), shares: none, reason: "service_forced" },
  { name: "by a client before", id: id("b"), shares: none, reason: "client_forced" },
  {
    name: "forced",
    id: id("4"),
    headers: ["x-envoy-force-trace", ""],
    shares: none,
    reason: "service_forced",
    packed: id("a"),
  },
  {
    name: "by a client",
    id: id("4"),
    headers: ["x-client-trace-id", "c"],
    shares: none,
    reason: "client_forced",
    packed: id("b"),
  },
  {
    name: "by a client of whom none are",
    id: id("4"),
    headers: ["x-client-trace-id", "c"],
    shares: { ...none, client: 0 },
    reason: "not_traceable",
  },
  { name: "overall none", id: id("9"), shares: { ...all, overall: 5 }, reason: "not_traceable", packed: id("4") },
  { name: "no id", reason: "not_traceable" },
  { name: "an id that is none", id: "what is this, and why so long a one", reason: "not_traceable" },
  { name: "an id that is short", id: "0000005", reason: "not_traceable" },
  { name: "an id of another form", id: "00000005", reason: "sampling" },
  { name: "the reason is not packed", id: id("4"), rules: { packsReason: false }, reason: "sampling" },
  {
    name: "no id, and none is asked for",
    rules: { samplesById: false },
    shares: { ...all, random: 1001 },
    reason: "sampling",
  },
  {
    name: "likewise beyond the share",
    rules: { samplesById: false },
    shares: { ...all, random: 0 },
    reason: "sampling",
  },
];
for (const { name, id: requestId, headers = [], shares = all, rules, random = 0.5, reason, packed } of cases) {
  test(name, () => {
    const map = new HeaderMap([...(requestId === undefined ? [] : ["x-request-id", requestId]), ...headers]);
    assert.equal(
      decideTrace(map, shares, { ...usual, ...rules }, () => random),
      reason,
    );
    assert.equal(map.get("x-request-id"), packed ?? requestId);
  });
}
