// The examples of RFC 7541, Appendix C, through decoder and encoder.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HpackDecoder } from "./hpack-decoder.ts";
import { huffmanDecode, huffmanEncode } from "./huffman.ts";

type Fields = readonly (readonly [name: string, value: string])[];

interface Block {
  readonly hex: string;
  readonly fields: Fields;
  /** Bytes of the dynamic table afterwards. */
  readonly tableBytes: number;
}

interface Example {
  readonly name: string;
  readonly maxTableBytes?: number;
  readonly blocks: readonly Block[];
}

const firstRequest: Fields = [
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/"],
  [":authority", "www.example.com"],
];
const secondRequest: Fields = [...firstRequest, ["cache-control", "no-cache"]];
const thirdRequest: Fields = [
  [":method", "GET"],
  [":scheme", "https"],
  [":path", "/index.html"],
  [":authority", "www.example.com"],
  ["custom-key", "custom-value"],
];
const firstResponse: Fields = [
  [":status", "302"],
  ["cache-control", "private"],
  ["date", "Mon, 21 Oct 2013 20:13:21 GMT"],
  ["location", "https://www.example.com"],
];
const secondResponse: Fields = [[":status", "307"], ...firstResponse.slice(1)];
const thirdResponse: Fields = [
  [":status", "200"],
  ["cache-control", "private"],
  ["date", "Mon, 21 Oct 2013 20:13:22 GMT"],
  ["location", "https://www.example.com"],
  ["content-encoding", "gzip"],
  ["set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"],
];

const examples: readonly Example[] = [
  {
    name: "C.2.1 literal with indexing",
    blocks: [
      {
        hex: "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
        fields: [["custom-key", "custom-header"]],
        tableBytes: 55,
      },
    ],
  },
  {
    name: "C.2.2 literal without indexing",
    blocks: [{ hex: "040c 2f73 616d 706c 652f 7061 7468", fields: [[":path", "/sample/path"]], tableBytes: 0 }],
  },
  {
    name: "C.2.3 literal never indexed",
    blocks: [{ hex: "1008 7061 7373 776f 7264 0673 6563 7265 74", fields: [["password", "secret"]], tableBytes: 0 }],
  },
  { name: "C.2.4 indexed", blocks: [{ hex: "82", fields: [[":method", "GET"]], tableBytes: 0 }] },
  {
    name: "C.3 requests without Huffman",
    blocks: [
      { hex: "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", fields: firstRequest, tableBytes: 57 },
      { hex: "8286 84be 5808 6e6f 2d63 6163 6865", fields: secondRequest, tableBytes: 110 },
      {
        hex: "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        fields: thirdRequest,
        tableBytes: 164,
      },
    ],
  },
  {
    name: "C.4 requests with Huffman",
    blocks: [
      { hex: "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", fields: firstRequest, tableBytes: 57 },
      { hex: "8286 84be 5886 a8eb 1064 9cbf", fields: secondRequest, tableBytes: 110 },
      { hex: "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", fields: thirdRequest, tableBytes: 164 },
    ],
  },
  {
    name: "C.5 responses without Huffman, which evict",
    maxTableBytes: 256,
    blocks: [
      {
        hex:
          "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d" +
          "546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        fields: firstResponse,
        tableBytes: 222,
      },
      { hex: "4803 3330 37c1 c0bf", fields: secondResponse, tableBytes: 222 },
      {
        hex:
          "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f" +
          "6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b" +
          "2076 6572 7369 6f6e 3d31",
        fields: thirdResponse,
        tableBytes: 215,
      },
    ],
  },
  {
    name: "C.6 responses with Huffman, which evict",
    maxTableBytes: 256,
    blocks: [
      {
        hex:
          "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7" +
          "8f0b 97c8 e9ae 82ae 43d3",
        fields: firstResponse,
        tableBytes: 222,
      },
      { hex: "4883 640e ffc1 c0bf", fields: secondResponse, tableBytes: 222 },
      {
        hex:
          "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335" +
          "dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        fields: thirdResponse,
        tableBytes: 215,
      },
    ],
  },
];

for (const { name, maxTableBytes = 4096, blocks } of examples) {
  test(`RFC 7541 ${name}`, () => {
    const decoder = new HpackDecoder(maxTableBytes);
    if (maxTableBytes === 256)
      assert.ok(decoder.decode(Buffer.from([0x3f, 0xe1, 0x01]), 0, 3, { onField: assert.fail }));
    for (const { hex, fields, tableBytes } of blocks) {
      const bytes = fromHex(hex);
      const seen: [string, string][] = [];
      const onField = (field: string, value: string): void => void seen.push([field, value]);
      assert.ok(decoder.decode(bytes, 0, bytes.length, { onField }));
      assert.deepEqual(seen, fields);
      assert.equal(decoder.tableBytes, tableBytes);
    }
  });
}

for (const { text, hex } of [
  { text: "www.example.com", hex: "f1e3 c2e5 f23a 6ba0 ab90 f4ff" },
  { text: "no-cache", hex: "a8eb 1064 9cbf" },
  { text: "custom-key", hex: "25a8 49e9 5ba9 7d7f" },
  { text: "Mon, 21 Oct 2013 20:13:21 GMT", hex: "d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff" },
]) {
  test(`RFC 7541 C.4 and C.6, Huffman: ${text}`, () => {
    const code = Buffer.alloc(hex.replaceAll(" ", "").length / 2);
    assert.equal(huffmanEncode(text, code, 0), code.length);
    assert.equal(code.toString("hex"), hex.replaceAll(" ", ""));
    const bytes = fromHex(hex);
    assert.equal(huffmanDecode(bytes, 0, bytes.length), text);
  });
}

function fromHex(hex: string): Buffer {
  return Buffer.from(hex.replaceAll(" ", ""), "hex");
}
