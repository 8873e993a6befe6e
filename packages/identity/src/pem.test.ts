// PEM texts as they come from files, from OpenSSL and over the wire.
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { parsePem, pemText } from "./pem.ts";

const one = "-----BEGIN X-----\nAQID\n-----END X-----\n";

const rows: readonly {
  readonly name: string;
  readonly input: string;
  readonly expected: readonly string[] | undefined;
}[] = [
  { name: "one block", input: one, expected: ["X 010203"] },
  { name: "two, with words around", input: `first\n${one}\nsecond:\n${one}end`, expected: ["X 010203", "X 010203"] },
  { name: "Windows' line ends", input: one.replaceAll("\n", "\r\n"), expected: ["X 010203"] },
  { name: "no final newline", input: one.trimEnd(), expected: ["X 010203"] },
  { name: "nothing", input: "", expected: [] },
  { name: "an empty block", input: "-----BEGIN X-----\n-----END X-----", expected: ["X "] },
  { name: "a block that is not closed", input: `${one}-----BEGIN X-----\nAQID\n`, expected: undefined },
  { name: "another label at the end", input: "-----BEGIN X-----\nAQID\n-----END Y-----", expected: undefined },
  { name: "what is not base64", input: "-----BEGIN X-----\nA!ID\n-----END X-----", expected: undefined },
  { name: "base64 with bits left over", input: "-----BEGIN X-----\nAR==\n-----END X-----", expected: undefined },
  { name: "base64 without its padding", input: "-----BEGIN X-----\nAQ\n-----END X-----", expected: undefined },
  {
    name: "an encrypted key's headers",
    input: "-----BEGIN X-----\nDEK-Info: a,b\n\nAQID\n-----END X-----",
    expected: undefined,
  },
];

for (const { name, input, expected } of rows) {
  test(`PEM: ${name}`, () => {
    const found = parsePem(input)?.map(({ label, der }) => `${label} ${der.toString("hex")}`);
    assert.deepEqual(found, expected);
  });
}

test("what is written is read back", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 })), (contents) => {
      const text = contents.map((content) => pemText("A B", content)).join("");
      assert.deepEqual(
        parsePem(text)?.map(({ der }) => der.toString("hex")),
        contents.map((content) => Buffer.from(content).toString("hex")),
      );
      assert.ok(text.split("\n").every((line) => line.length <= 64));
    }),
  );
});
