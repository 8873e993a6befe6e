// Metadata as protobuf's own library reads it back, and values that no message could hold.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary, toJson } from "@bufbuild/protobuf";
import { ProtobufWriter } from "@tulle/telemetry";
import { AccessLogCommonSchema } from "@tulle/xds/envoy/data/accesslog/v3/accesslog_pb";
import { utf8Text } from "./utf8-text.ts";
import { writeFilterMetadata } from "./write-metadata.ts";

function written(metadata: Readonly<Record<string, Readonly<Record<string, unknown>>>>): unknown {
  const writer = new ProtobufWriter();
  writeFilterMetadata(writer, 17, metadata);
  const message = toJson(AccessLogCommonSchema, fromBinary(AccessLogCommonSchema, writer.written)) as {
    readonly metadata?: { readonly filterMetadata?: unknown };
  };
  return message.metadata?.filterMetadata;
}

test("values of all kinds stand in it, however deep", () => {
  const metadata = {
    "a.filter": {
      text: "grün",
      number: -1.5,
      yes: true,
      no: false,
      none: null,
      list: ["a", 1, [], {}],
      map: { a: { b: "c" } },
    },
    another: {},
  };
  assert.deepEqual(written(metadata), metadata);
  assert.equal(written({}), undefined);
});

test("what is deeper than anybody means, or no value, is null", () => {
  let deep: unknown = "bottom";
  for (let level = 0; level < 100; level += 1) deep = [deep];
  const text = JSON.stringify(written({ a: { deep, nothing: undefined } }));
  assert.equal(text, `{"a":{"deep":${"[".repeat(32)}null${"]".repeat(32)},"nothing":null}}`);
});

const texts: readonly (readonly [given: string, expected: string])[] = [
  ["plain", "plain"],
  ["gr\xc3\xbcn", "grün"],
  ["\xf0\x9f\x98\x80", "😀"],
  ["\xff\xc3(\xed\xa0\x80\xc0\xaf\xf4\x90\x80\x80", "!!(!!!!!!!!!"],
  ["wide: €ü", "wide: €ü"],
];
for (const [given, expected] of texts) {
  test(`${JSON.stringify(given)} as text of a message`, () => assert.equal(utf8Text(given), expected));
}
