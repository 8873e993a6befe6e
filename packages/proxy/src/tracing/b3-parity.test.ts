// Headers of B3, sound, unsound and contradicting, as this proxy and a stock Envoy read them and pass them on.
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import {
  startTracingStage,
  type TracedCall,
  type TracedOutcome,
  type TracingStage,
  zipkin,
} from "../testing/tracing-stage.ts";

const trace = "80f198ee56343ba864fe8b2a57d3eff7";
const span = "e457b5a2e4d86bd1";
const parent = "05e3ac9a4f6e3b90";
const zeros = "0".repeat(16);
const endless = "f".repeat(4000);

type Headers = NonNullable<TracedCall["headers"]>;
type Value = string | readonly string[];

const several = (
  ids: { readonly trace?: Value; readonly span?: Value; readonly parent?: Value },
  sampled?: Value,
  flags?: Value,
): Headers =>
  Object.fromEntries(
    Object.entries({
      "x-b3-traceid": ids.trace,
      "x-b3-spanid": ids.span,
      "x-b3-parentspanid": ids.parent,
      "x-b3-sampled": sampled,
      "x-b3-flags": flags,
    }).filter((entry): entry is [string, Value] => entry[1] !== undefined),
  );
const both = { trace, span };

/** Read alike. */
const same: readonly Headers[] = [
  { b3: `${trace}-${span}` },
  { b3: `${trace}-${span}-1` },
  { b3: `${trace}-${span}-1-${parent}` },
  { b3: `${trace}-${span}-1-${zeros}` },
  { b3: `${trace.slice(16)}-${span}-1` },
  several(both),
  several({ ...both, parent }),
  several({ ...both, parent: zeros }),
  several({ ...both, parent: "" }),
  several(both, undefined, "0"),
  several(both, undefined, "2"),
  several({ trace: trace.slice(16), span }),
  several(both, ["1", "0"]),
  several({ trace: [trace, trace], span }),
  { ...several({ trace: trace.replace("8", "7"), span: parent }, "0"), b3: `${trace}-${span}-1` },
];

/** Not sampled, and told so to the next one. */
const unsampled: readonly Headers[] = [
  { b3: `${trace}-${span}-0` },
  { b3: "0" },
  { ...several(both, "1"), b3: "0" },
  several({}, "0"),
  ...["0", "2", "", "false", "TRUE"].map((sampled) => several(both, sampled)),
];

/** Unsound: a new trace begins; Envoy makes no span. */
const unsound: readonly Headers[] = [
  ...[
    "",
    trace,
    `${trace}-`,
    `${trace}-${span}-`,
    `${trace}-${span}-2`,
    `${trace}-${span}-true`,
    `${trace}-${span}-1-`,
    `${trace}-${span}-${parent}`,
    `${trace}-${span}-1-${parent}-x`,
    `${trace}-${span}-1-${parent}0`,
    `${trace}-${span}-11`,
    `${trace.slice(1)}-${span}-1`,
    `${trace}0-${span}-1`,
    `${trace}-${span}0-1`,
    `${trace}_${span}_1`,
    `x${trace.slice(1)}-${span}-1`,
    "2",
    "true",
    "D",
    "00",
    "1-1",
    endless,
  ].map((b3) => ({ b3 })),
  { ...several({ trace, span: parent }, "1"), b3: "junk" },
  several({ ...both, parent: "junk" }),
  several({ trace: "junk", span }),
  several({ trace, span: "junk" }),
  several({ trace: trace.slice(1), span }),
  several({ trace: `${trace}0`, span }),
  several({ trace, span: `${span}0` }),
  several({ trace: endless, span }),
];

/** A new trace begins, where Envoy goes on with what it was told. */
const stricter: readonly Headers[] = [
  { b3: `${trace.toUpperCase()}-${span}-1` },
  { b3: `${trace}-${span.toUpperCase()}-1` },
  { b3: `${zeros}${zeros}-${span}-1` },
  { b3: `${trace}-${zeros}-1` },
  { b3: [`${trace}-${span}-1`, "0"] },
  several({ trace: trace.toUpperCase(), span }),
  several({ trace: `${zeros}${zeros}`, span }),
  several({ trace, span: zeros }),
];

const calls = (headers: readonly Headers[], spans: number, envoysSpans: number): readonly TracedCall[] =>
  headers.map((each) => ({ listener: "zipkin", path: "/ok", headers: each, spans, envoysSpans }));
/** B3: `debug` beats a decision. */
const debug = several(both, "0", "1");

const rows = [
  ...calls(same, 1, 1),
  ...calls(unsampled, 0, 0),
  ...calls(unsound, 1, 0),
  ...calls(stricter, 1, 1),
  ...calls([debug], 1, 0),
];

suite("B3 read by both", () => {
  let stage: TracingStage;
  let ours: readonly TracedOutcome[] = [];
  let envoys: readonly TracedOutcome[] = [];

  before(async () => {
    const route = { match: { prefix: "/" }, route: { cluster: "app" } };
    // An id of a trace that is new is not that of its first span.
    const tracing = { provider: zipkin({ trace_id_128bit: true }) };
    stage = await startTracingStage([{ name: "zipkin", direction: "INBOUND", tracing }], [route]);
    ({ ours, envoys } = await stage.run(rows));
  });
  after(() => stage.stop());

  /** Of the request's span; undefined: there is none. */
  const traceIdOf = (side: "ours" | "envoys", index: number): string | undefined =>
    stage.collectors[side].spans.find(({ attributes }) => attributes["user_agent"] === `${side}-${index}`)?.traceId;

  for (const [index, { headers, envoysSpans }] of rows.entries()) {
    test(JSON.stringify(headers).slice(0, 200), () => {
      const mine = ours[index]!;
      const theirs = envoys[index]!;
      if ([same, unsampled].some((each) => each.includes(headers!))) {
        assert.deepEqual(mine, { ...theirs, upstream: theirs.upstream.map(withoutNobody) });
        assert.equal(traceIdOf("ours", index), traceIdOf("envoys", index));
        return;
      }
      assert.equal(theirs.spans.length, envoysSpans);
      const traceId = traceIdOf("ours", index);
      if (headers === debug) return assert.equal(traceId, trace);
      assert.match(traceId!, /^[0-9a-f]{32}$/);
      assert.ok(traceId !== trace && traceId !== `${zeros}${zeros}`, String(traceId));
      assert.match((mine.spans[0] as { readonly ids: string }).ids, /^TRACE REQUEST $/);
      // Nobody is told what was unsound.
      const told = Object.values(mine.upstream[0]!).join(" ");
      assert.ok(told.includes("TRACE") && !/junk|x0f|f{100}/.test(told), told);
    });
  }
});

/** Envoy reads a parent of zeros as none, and passes it on. */
function withoutNobody({
  "x-b3-parentspanid": told,
  ...headers
}: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return told === undefined || told === "" || told === zeros ? headers : { ...headers, "x-b3-parentspanid": told };
}
