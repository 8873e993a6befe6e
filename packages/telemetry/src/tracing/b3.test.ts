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
  { text: `${traceId}-${spanId}-1-${"0".repeat(16)}`, expected: { ids, decision: "sampled" } },
  { text: `${traceId}-${spanId}-${parentSpanId}`, expected: undefined },
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
  {
    name: "a parent of zeros",
    headers: { traceId, spanId, parentSpanId: "0".repeat(16) },
    expected: { ids, decision: undefined },
  },
  { name: "an empty parent", headers: { traceId, spanId, parentSpanId: "" }, expected: { ids, decision: undefined } },
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

/** Mulberry32: the same numbers in [0, 1) each time. */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const isId = (text: string | undefined, ...lengths: readonly number[]): boolean =>
  text !== undefined &&
  lengths.includes(text.length) &&
  Array.from(text).every((digit) => "0123456789abcdef".includes(digit));
const isNobody = (text: string): boolean => BigInt(`0x${text}`) === 0n;
const decisions = new Map([
  ["0", "not_sampled"],
  ["1", "sampled"],
  ["d", "debug"],
] as const);

/** The same by cutting at dashes, in place of an expression. */
function readByParts(text: string): B3Context | undefined {
  const parts = text.split("-");
  const decisionOf = (part: string | undefined) => decisions.get(part as "0" | "1" | "d");
  if (parts.length === 1)
    return decisionOf(text) === undefined ? undefined : { ids: undefined, decision: decisionOf(text) };
  const [trace = "", span = "", decision, parent] = parts;
  if (parts.length > 4 || !isId(trace, 16, 32) || !isId(span, 16) || isNobody(trace) || isNobody(span))
    return undefined;
  if (decision !== undefined && decisionOf(decision) === undefined) return undefined;
  if (parent !== undefined && !isId(parent, 16)) return undefined;
  const parentOf = parent === undefined || isNobody(parent) ? undefined : parent;
  return { ids: { traceId: trace, spanId: span, parentSpanId: parentOf }, decision: decisionOf(decision) };
}

const pieces = [
  traceId,
  spanId,
  parentSpanId,
  traceId.slice(16),
  "0".repeat(16),
  "0".repeat(32),
  "f".repeat(5000),
  ..."-,-,-,0,1,d,true,, ,\xe9,\0,x,F".split(","),
  ",",
];
const cases = 20_000;

test(`b3: ${cases} texts of sound and unsound pieces are read as by their parts`, () => {
  const random = seededRandom(1);
  const pick = (): string => pieces[Math.floor(random() * pieces.length)]!;
  let sound = 0;
  for (let count = 0; count < cases; count += 1) {
    const isNear = random() < 0.7;
    let text = isNear
      ? [traceId, spanId, pick(), pick()].slice(0, 2 + Math.floor(random() * 3)).join("-")
      : Array.from({ length: Math.floor(random() * 8) }, pick).join("");
    if (random() < 0.3) {
      const at = Math.floor(random() * (text.length + 1));
      text = text.slice(0, at) + (random() < 0.5 ? pick() : "") + text.slice(at + Math.floor(random() * 2));
    }
    const parsed = parseB3(text);
    assert.deepEqual(parsed, readByParts(text), JSON.stringify(text.slice(0, 200)));
    if (parsed?.ids !== undefined) sound += 1;
  }
  assert.ok(sound > cases / 20 && sound < cases, String(sound));
});

test(`x-b3-*: ${cases} sets of headers give sound ids or none`, () => {
  const random = seededRandom(2);
  const some = (good: string): string | undefined => {
    const drawn = random();
    return drawn < 0.5 ? good : drawn < 0.6 ? undefined : pieces[Math.floor(random() * pieces.length)];
  };
  let sound = 0;
  for (let count = 0; count < cases; count += 1) {
    const headers: B3Headers = {
      traceId: some(traceId),
      spanId: some(spanId),
      parentSpanId: some(parentSpanId),
      sampled: some("1"),
      flags: some("0"),
    };
    const parsed = parseB3Headers(headers);
    const what = JSON.stringify(headers).slice(0, 300);
    const hasIds = headers.traceId !== undefined || headers.spanId !== undefined;
    if (parsed?.ids === undefined) {
      assert.equal(parsed === undefined, hasIds, what);
      continue;
    }
    sound += 1;
    const { ids: told } = parsed;
    assert.ok(told.traceId === headers.traceId && isId(told.traceId, 16, 32) && !isNobody(told.traceId), what);
    assert.ok(told.spanId === headers.spanId && isId(told.spanId, 16) && !isNobody(told.spanId), what);
    const { parentSpanId: parent } = told;
    assert.ok(parent === undefined || (isId(parent, 16) && !isNobody(parent)), what);
    assert.equal(parsed.decision === "debug", headers.flags === "1", what);
    const text = b3Text(told.traceId, told.spanId, parsed.decision === "sampled", parent);
    assert.deepEqual(parseB3(text)?.ids, told, what);
  }
  assert.ok(sound > cases / 20 && sound < cases, String(sound));
});
