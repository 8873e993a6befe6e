// The bytes of sock_diag's messages. What a running kernel makes of them: socket-owner.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeAnswer, encodeRequest, type DiagAnswer } from "./inet-diag.ts";

const bytes = (...lines: readonly string[]): Uint8Array =>
  Uint8Array.from(Buffer.from(lines.join("").replaceAll(/\s/g, ""), "hex"));

const v4 = (text: string): Uint8Array => Uint8Array.from(text.split("."), Number);
const v6Loopback = Uint8Array.from([...Array<number>(15).fill(0), 1]);

test("a question names the socket by its four numbers, whatever its state and interface", () => {
  assert.deepEqual(
    encodeRequest({ address: v4("127.0.0.2"), port: 0x9c40 }, { address: v4("127.16.4.3"), port: 15_007 }, 7),
    bytes(
      "48000000 1400 0100 07000000 00000000", // length, by family, request, sequence, from whom
      "02 06 00 00 ffffffff", // IPv4, TCP, no extensions, all states
      "9c40 3a9f",
      "7f000002 00000000 00000000 00000000",
      "7f100403 00000000 00000000 00000000",
      "00000000 ffffffff ffffffff", // any interface, any cookie
    ),
  );
});

test("a question about IPv6 has the long addresses", () => {
  const end = { address: v6Loopback, port: 80 };
  const encoded = encodeRequest(end, end, 1);
  assert.equal(encoded[16], 10);
  assert.deepEqual(encoded.subarray(28, 60), bytes("00".repeat(15), "01", "00".repeat(15), "01"));
});

const found = bytes(
  "5c000000 1400 0000 07000000 11220000",
  "02 01 00 00 9c40 3a9f",
  "7f000002 00000000 00000000 00000000",
  "7f100403 00000000 00000000 00000000",
  "00000000 0807060504030201",
  "00000000 00000000 00000000 feff0000 39300000",
  "0500 0800 0000 0000", // an attribute, which nobody asked for
);

const answers: readonly {
  readonly name: string;
  readonly message: Uint8Array;
  readonly expected: DiagAnswer | undefined;
}[] = [
  {
    name: "a socket",
    message: found,
    expected: {
      kind: "socket",
      socket: {
        state: 1,
        local: { address: v4("127.0.0.2"), port: 40_000 },
        remote: { address: v4("127.16.4.3"), port: 15_007 },
        cookie: 0x01_02_03_04_05_06_07_08n,
        uid: 65_534,
        inode: 12_345,
      },
    },
  },
  {
    name: "no such socket",
    message: bytes("24000000 0200 0000 07000000 00000000 feffffff 48000000 14000100 07000000 00000000"),
    expected: { kind: "error", errorNumber: 2 },
  },
  {
    name: "an answer to an earlier question",
    message: bytes("24000000 0200 0000 06000000 00000000 feffffff"),
    expected: undefined,
  },
  { name: "an answer that was cut short", message: found.subarray(0, 80), expected: undefined },
  {
    name: "a message of another kind",
    message: bytes("14000000 0300 0000 07000000 00000000 00000000"),
    expected: undefined,
  },
  { name: "nothing", message: new Uint8Array(), expected: undefined },
];
for (const { name, message, expected } of answers) {
  test(`${name} is read as it is`, () => {
    const read = decodeAnswer(message, 7);
    assert.deepEqual(read, expected);
  });
}
