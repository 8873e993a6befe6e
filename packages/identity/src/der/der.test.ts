// DER as it is written and as it is read: equal both ways, and strict about everything that could be read in two ways.
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import {
  asciiText,
  bitStringOctets,
  booleanValue,
  DerError,
  type DerElement,
  DerReader,
  integerOctets,
  objectIdentifierText,
  smallIntegerValue,
  timeValue,
} from "./der-reader.ts";
import { element, integer, objectIdentifier, octetString, sequence, smallInteger, time } from "./der-writer.ts";

const read = (hex: string) => {
  const reader = new DerReader(Buffer.from(hex.replaceAll(" ", ""), "hex"));
  const found = reader.any();
  reader.end();
  return found;
};

const refused: readonly {
  readonly name: string;
  readonly input: string;
  readonly as: (found: DerElement) => unknown;
}[] = [
  { name: "nothing", input: "", as: () => {} },
  { name: "a tag without length", input: "30", as: () => {} },
  { name: "a content that is cut", input: "04 02 01", as: () => {} },
  { name: "bytes behind the end", input: "04 01 01 00", as: () => {} },
  { name: "an indefinite length", input: "30 80 00 00", as: () => {} },
  { name: "a length of one octet too many", input: "04 81 01 00", as: () => {} },
  { name: "a length with a leading zero", input: "04 82 00 80", as: () => {} },
  { name: "a length of five octets", input: "04 85 01 00 00 00 00", as: () => {} },
  { name: "a tag of several octets", input: "1f 81 01 00", as: () => {} },
  { name: "an integer without octets", input: "02 00", as: integerOctets },
  { name: "an integer with a zero too many", input: "02 02 00 01", as: integerOctets },
  { name: "a negative integer with an octet too many", input: "02 02 ff 80", as: integerOctets },
  { name: "a negative count", input: "02 01 ff", as: smallIntegerValue },
  { name: "a count beyond 32 bits", input: "02 05 01 00 00 00 00", as: smallIntegerValue },
  { name: "a boolean of 1", input: "01 01 01", as: booleanValue },
  { name: "a boolean of two octets", input: "01 02 ff ff", as: booleanValue },
  { name: "bits that do not fill their octets", input: "03 02 01 fe", as: bitStringOctets },
  { name: "a bit string without octets", input: "03 00", as: bitStringOctets },
  { name: "an object identifier without octets", input: "06 00", as: objectIdentifierText },
  { name: "an object identifier that is cut", input: "06 02 55 80", as: objectIdentifierText },
  { name: "an object identifier with a zero too many", input: "06 03 55 80 01", as: objectIdentifierText },
  { name: "an arc beyond all numbers", input: "06 0b 55 ff ff ff ff ff ff ff ff ff 7f", as: objectIdentifierText },
  { name: "a name with a NUL", input: "86 03 61 00 62", as: (found) => asciiText(found.content) },
  { name: "a name with a line break", input: "86 02 61 0a", as: (found) => asciiText(found.content) },
  { name: "a name in UTF-8", input: "86 02 c3 a4", as: (found) => asciiText(found.content) },
  { name: "a time without seconds", input: "17 0b 32363031303130303030 5a", as: timeValue },
  { name: "a time of the 31st of June", input: "17 0d 323630363331303030303030 5a", as: timeValue },
  { name: "a time with an offset", input: "17 11 323630363031303030303030 2b30313030", as: timeValue },
];

for (const { name, input, as } of refused) {
  test(`not DER: ${name}`, () => {
    assert.throws(() => as(read(input)), DerError);
  });
}

test("integers keep their value in the fewest octets", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 160n }), fc.nat(4), (value, zeros) => {
      const hex = value.toString(16);
      const octets = Buffer.from("00".repeat(zeros) + (hex.length % 2 === 0 ? hex : `0${hex}`), "hex");
      const found = integerOctets(new DerReader(integer(octets)).read(0x02));
      assert.equal(BigInt(`0x${found.toString("hex")}`), value);
    }),
  );
});

test("lengths, object identifiers and times come back as they went", () => {
  const arcs = fc.array(fc.nat(2 ** 31 - 1), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(
      fc.nat(70_000),
      arcs,
      fc.integer({ min: -600_000_000, max: 250_000_000_000 }),
      (length, tail, seconds) => {
        const content = Buffer.alloc(length);
        assert.equal(new DerReader(octetString(content)).read(0x04).content.length, length);
        const dotted = [2, 5, ...tail].join(".");
        assert.equal(objectIdentifierText(new DerReader(objectIdentifier(dotted)).any()), dotted);
        assert.equal(timeValue(new DerReader(time(seconds * 1000)).any()), seconds * 1000);
      },
    ),
    { numRuns: 300 },
  );
});

test("readers go in and out of what holds them", () => {
  const bytes = sequence(smallInteger(5), element(0x31, smallInteger(6)), octetString(Buffer.from("x")));
  const reader = new DerReader(bytes).enter(0x30);
  assert.equal(reader.optional(0x04), undefined);
  assert.equal(smallIntegerValue(reader.read(0x02)), 5);
  assert.equal(smallIntegerValue(reader.enter(0x31).read(0x02)), 6);
  assert.throws(() => reader.read(0x02), /expected tag 0x02, found 0x04/);
  assert.throws(() => reader.end(), DerError);
  assert.equal(reader.read(0x04).content.toString(), "x");
  assert.ok(reader.done);
  assert.throws(() => reader.read(0x04), /found the end/);
});
