// W3C Trace Context by the letter: what is read, what begins a new trace, and lists of states as they are passed on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { maxTraceStateCharacters, parseTraceParent, passedTraceState, traceParentText } from "./trace-context.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";
const sound = `00-${traceId}-${spanId}-01`;

const parents: readonly { readonly name: string; readonly text: string; readonly isSampled?: boolean }[] = [
  { name: "sampled", text: sound, isSampled: true },
  { name: "not sampled", text: `00-${traceId}-${spanId}-00`, isSampled: false },
  { name: "flags that nobody has named", text: `00-${traceId}-${spanId}-ff`, isSampled: true },
  { name: "such flags without the one", text: `00-${traceId}-${spanId}-fe`, isSampled: false },
  { name: "a later version", text: `cc-${traceId}-${spanId}-01`, isSampled: true },
  { name: "a later version that goes on", text: `cc-${traceId}-${spanId}-01-what-is-this`, isSampled: true },
  { name: "a later version that goes on without a dash", text: `cc-${traceId}-${spanId}-01.what` },
  { name: "version 00 that goes on", text: `${sound}-what` },
  { name: "version 00 with a dash at its end", text: `${sound}-` },
  { name: "the version that is none", text: `ff-${traceId}-${spanId}-01` },
  { name: "a version of one digit", text: `0-${traceId}-${spanId}-01` },
  { name: "a version that is no number", text: `.0-${traceId}-${spanId}-01` },
  { name: "capitals in the version", text: `CC-${traceId}-${spanId}-01` },
  { name: "capitals", text: sound.toUpperCase() },
  { name: "zero as the trace", text: `00-${"0".repeat(32)}-${spanId}-01` },
  { name: "zero as the span", text: `00-${traceId}-${"0".repeat(16)}-01` },
  { name: "a trace that is too long", text: `00-${traceId}0-${spanId}-01` },
  { name: "a trace that is too short", text: `00-${traceId.slice(1)}-${spanId}-01` },
  { name: "a trace that is no number", text: `00-.${traceId.slice(1)}-${spanId}-01` },
  { name: "a span that is no number", text: `00-${traceId}-.${spanId.slice(1)}-01` },
  { name: "flags that are no number", text: `00-${traceId}-${spanId}-.1` },
  { name: "flags of one digit", text: `00-${traceId}-${spanId}-1` },
  { name: "flags of three digits", text: `00-${traceId}-${spanId}-001` },
  { name: "white space", text: ` ${sound}` },
  { name: "another separator", text: sound.replaceAll("-", "_") },
  { name: "two values in one", text: `${sound},${sound}` },
  { name: "nothing", text: "" },
  { name: "endless", text: `cc${"0".repeat(60_000)}` },
];
for (const { name, text, isSampled } of parents) {
  test(`traceparent: ${name}`, () => {
    const expected = isSampled === undefined ? undefined : { traceId, spanId, isSampled };
    assert.deepEqual(parseTraceParent(text), expected);
  });
}

test("traceparent: what is written is read", () => {
  for (const isSampled of [true, false]) {
    assert.deepEqual(parseTraceParent(traceParentText(traceId, spanId, isSampled)), { traceId, spanId, isSampled });
  }
});

const list = (count: number, member: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => member(index)).join(",");
const long = "v".repeat(200);

const states: readonly { readonly name: string; readonly text: string; readonly expected: string | undefined }[] = [
  { name: "a member", text: "a=1", expected: "a=1" },
  { name: "several", text: "a=1,b=2", expected: "a=1,b=2" },
  { name: "white space around", text: "a=1 \t , \t b=2 ", expected: "a=1,b=2" },
  { name: "empty members", text: ",a=1,,b=2,", expected: "a=1,b=2" },
  { name: "a tenant", text: "0t@sys=1", expected: "0t@sys=1" },
  { name: "all that a key may have", text: "a0_-*/=1", expected: "a0_-*/=1" },
  { name: "all that a value may have", text: "a=! ~;:", expected: "a=! ~;:" },
  { name: "thirty-two members", text: list(32, (n) => `a${n}=1`), expected: list(32, (n) => `a${n}=1`) },
  { name: "thirty-three", text: list(33, (n) => `a${n}=1`), expected: undefined },
  { name: "a key twice", text: "a=1,b=2,a=3", expected: undefined },
  { name: "a key in capitals", text: "A=1", expected: undefined },
  { name: "a key that begins with a digit", text: "0a=1", expected: undefined },
  { name: "a tenant without a system", text: "a@=1", expected: undefined },
  { name: "a system that begins with a digit", text: "a@0=1", expected: undefined },
  { name: "two systems", text: "a@b@c=1", expected: undefined },
  { name: "a key that is too long", text: `${"a".repeat(257)}=1`, expected: undefined },
  { name: "a value that is too long", text: `a=${"v".repeat(257)}`, expected: undefined },
  { name: "no value", text: "a=", expected: undefined },
  { name: "no equals sign", text: "a", expected: undefined },
  { name: "two equals signs", text: "a=1=2", expected: undefined },
  { name: "a value beyond ASCII", text: "a=\u00e9", expected: undefined },
  { name: "nothing", text: "", expected: undefined },
  { name: "commas alone", text: ",,,", expected: undefined },
  { name: "endless", text: `a=${"v".repeat(60_000)}`, expected: undefined },
  {
    name: "more than has to be passed on: long ones go first",
    text: `a=${long},b=2,c=${long},d=${long}`,
    expected: `a=${long},b=2,c=${long}`,
  },
  {
    name: "then those at the end",
    text: list(6, (n) => `a${n}=${"v".repeat(100)}`),
    expected: list(4, (n) => `a${n}=${"v".repeat(100)}`),
  },
];
for (const { name, text, expected } of states) {
  test(`tracestate: ${name}`, () => assert.equal(passedTraceState(text), expected));
}

test("whatever strangers write, what is passed on is sound and bounded", () => {
  let seed = 7;
  const below = (limit: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * limit);
  };
  const characters = "0123456789abcdefABCF-=,@*/_ \t\u00ff;";
  const mutated = (text: string): string => {
    const parts = text.split("");
    for (let count = below(5); count >= 0; count -= 1) {
      const character = characters[below(characters.length)]!;
      parts.splice(below(parts.length + 1), below(3), ...Array.from({ length: below(3) }, () => character));
    }
    return parts.join("");
  };
  for (let round = 0; round < 20_000; round += 1) {
    const parent = parseTraceParent(mutated(sound));
    if (parent !== undefined) {
      assert.match(parent.traceId, /^[0-9a-f]{32}$/);
      assert.match(parent.spanId, /^[0-9a-f]{16}$/);
    }
    const state = passedTraceState(mutated("foo=1,b@ar=a b,rojo/1=00f067aa0ba902b7"));
    if (state === undefined) continue;
    assert.equal(passedTraceState(state), state);
    assert.ok(state.length <= maxTraceStateCharacters);
  }
});
