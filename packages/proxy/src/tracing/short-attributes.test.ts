// Attributes that are gathered as text against the same ones written message by message.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ProtobufWriter } from "@tulle/telemetry";
import { ShortAttributes } from "./short-attributes.ts";
import { spanText } from "./span-text.ts";

const field = 9;
type Pairs = readonly (readonly [key: string, value: string])[];

function gathered(writer: ProtobufWriter, attributes: ShortAttributes, pairs: Pairs): string {
  writer.clear();
  for (const [key, value] of pairs) attributes.add(key, value);
  attributes.flush();
  return writer.written.toString("hex");
}

function oneByOne(pairs: Pairs): string {
  const writer = new ProtobufWriter();
  for (const [key, value] of pairs) {
    const start = writer.begin(field);
    writer.text(1, key);
    const valueStart = writer.begin(2);
    writer.text(1, spanText(value));
    writer.end(valueStart);
    writer.end(start);
  }
  return writer.written.toString("hex");
}

const wire = (text: string): string => Buffer.from(text).toString("latin1");

const cases: readonly { readonly name: string; readonly pairs: Pairs }[] = [
  { name: "none", pairs: [] },
  { name: "an empty value", pairs: [["a", ""]] },
  {
    name: "short ones",
    pairs: [
      ["http.method", "GET"],
      ["http.status_code", "200"],
    ],
  },
  {
    name: "a long one between short ones",
    pairs: [
      ["a", "1"],
      ["http.url", "x".repeat(300)],
      ["b", "2"],
    ],
  },
  {
    name: "one that is not ASCII between others",
    pairs: [
      ["a", "1"],
      ["user_agent", wire("Zoë/😀")],
      ["b", "2"],
    ],
  },
  { name: "bytes that are no UTF-8", pairs: [["user_agent", "a\xffb"]] },
  { name: "a text of the configuration beyond a byte", pairs: [["tag", "→ Zoë"]] },
  { name: "a name that is not ASCII", pairs: [["größe", "1"]] },
  { name: "a long name", pairs: [["n".repeat(200), "1"]] },
  { name: "one beyond the bound of a tag", pairs: [["a", "x".repeat(5000)]] },
  { name: "the same name twice", pairs: [1, 2, 3].map((value) => ["a", String(value)] as const) },
];
for (const { name, pairs } of cases) {
  test(name, () => {
    const writer = new ProtobufWriter();
    const attributes = new ShortAttributes(writer, field);
    // The second time what stands before values is known.
    for (let time = 0; time < 2; time += 1) assert.equal(gathered(writer, attributes, pairs), oneByOne(pairs));
  });
}

test("every length around the edge of one byte", () => {
  const writer = new ProtobufWriter();
  const attributes = new ShortAttributes(writer, field);
  for (let length = 100; length < 150; length += 1) {
    for (const pairs of [[["key", "v".repeat(length)]], [["k".repeat(length), "value"]]] as const) {
      assert.equal(gathered(writer, attributes, pairs), oneByOne(pairs));
    }
  }
});

test("names beyond those that are kept are written all the same", () => {
  const writer = new ProtobufWriter();
  const attributes = new ShortAttributes(writer, field);
  const pairs = Array.from({ length: 1500 }, (_, index) => [`name-${index}`, "v"] as const);
  assert.equal(gathered(writer, attributes, pairs), oneByOne(pairs));
});
