// B3 in one header and in several.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type B3Context, type B3Headers, b3Text, parseB3, parseB3Headers } from "./b3.ts";

const traceId = "80f198ee56343ba864fe8b2a57d3eff7";
const spanId = "e457b5a2e4d86bd1";
const parentSpanId = "05e3ac9a4f6e3b90";
const ids = { traceId, spanId, parentSpanId: undefined };

const singles: readonly { readonly text: string; readonly expected: B3Context | undefined }[] = [
  { text: `${traceId}-${spanId}-1`, expected: { ids, decision: "sampled" } },
  { text: `${traceId}-${spanId}-0`, expected: { ids, decision: "not_sampled" } },
  { text: `${traceId}-${spanId}-d`, expected: { ids, decision: "debug" } },
  { text: `${traceId}-${spanId}`, expected: { ids, decision: undefined } },
  { text: `${traceId}-${spanId}-1-${parentSpanId}`, expected: { ids: { ...ids, parentSpanId }, decision: "sampled" } },
  {
    text: `${traceId.slice(16)}-${spanId}-1`,
    expected: { ids: { ...ids, traceId: traceId.slice(16) }, decision: "sampled" },
  },
  { text: "0", expected: { ids: undefined, decision: "not_sampled" } },
  { text: "1", expected: { ids: undefined, decision: "sampled" } },
  { text: "d", expected: { ids: undefined, decision: "debug" } },
  { text: "constructor", expected: undefined },
  { text: "", expected: undefined },
  { text: traceId, expected: undefined },
  { text: `${traceId}-${spanId}-2`, expected: undefined },
  { text: `${traceId}-${spanId}-1-`, expected: undefined },
  { text: `${traceId}-${spanId}-1-${parentSpanId}-x`, expected: undefined },
  { text: `${traceId.toUpperCase()}-${spanId}-1`, expected: undefined },
  { text: `${"0".repeat(32)}-${spanId}-1`, expected: undefined },
  { text: `${traceId}-${"0".repeat(16)}-1`, expected: undefined },
  { text: `${traceId}${"0".repeat(60_000)}-${spanId}-1`, expected: undefined },
];
for (const { text, expected } of singles) {
  test(`b3: ${text.slice(0, 80)}`, () => assert.deepEqual(parseB3(text), expected));
}

const none: B3Headers = {
  traceId: undefined,
  spanId: undefined,
  parentSpanId: undefined,
  sampled: undefined,
  flags: undefined,
};
const several: readonly {
  readonly name: string;
  readonly headers: Partial<B3Headers>;
  readonly expected: B3Context | undefined;
}[] = [
  { name: "none", headers: {}, expected: { ids: undefined, decision: undefined } },
  { name: "ids", headers: { traceId, spanId }, expected: { ids, decision: undefined } },
  {
    name: "all",
    headers: { traceId, spanId, parentSpanId, sampled: "1" },
    expected: { ids: { ...ids, parentSpanId }, decision: "sampled" },
  },
  { name: "a word", headers: { traceId, spanId, sampled: "true" }, expected: { ids, decision: "sampled" } },
  { name: "not sampled", headers: { sampled: "0" }, expected: { ids: undefined, decision: "not_sampled" } },
  {
    name: "debug against a decision",
    headers: { traceId, spanId, sampled: "0", flags: "1" },
    expected: { ids, decision: "debug" },
  },
  { name: "no span", headers: { traceId }, expected: undefined },
  { name: "no trace", headers: { spanId }, expected: undefined },
  { name: "a trace that is none", headers: { traceId: "junk", spanId }, expected: undefined },
  { name: "a parent that is none", headers: { traceId, spanId, parentSpanId: "junk" }, expected: undefined },
  { name: "zero", headers: { traceId: "0".repeat(16), spanId }, expected: undefined },
];
for (const { name, headers, expected } of several) {
  test(`x-b3-*: ${name}`, () => assert.deepEqual(parseB3Headers({ ...none, ...headers }), expected));
}

test("what is written is read", () => {
  assert.deepEqual(parseB3(b3Text(traceId, spanId, true, undefined)), { ids, decision: "sampled" });
  const context = { ids: { ...ids, parentSpanId }, decision: "not_sampled" };
  assert.deepEqual(parseB3(b3Text(traceId, spanId, false, parentSpanId)), context);
});
