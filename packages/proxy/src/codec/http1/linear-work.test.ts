// Whatever is sent byte by byte costs by its length and not by the square of it, on both sides, and what is too large
// is refused when its limit is reached and not at its end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestLineReader } from "../../filters/listener/http-inspector/http-inspector.ts";
import { ClientHelloReader } from "../../filters/listener/tls-inspector/client-hello.ts";
import { readRequests, readResponse } from "../../testing/codec-probe.ts";
import { countWork } from "../../testing/counted-work.ts";
import { extension, helloFrom, inRecordsOf } from "../../testing/made-hello.ts";

const bytesOf = (text: string): readonly Buffer[] => Array.from(Buffer.from(text, "latin1"), (byte) => Buffer.of(byte));
const chunked = "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n";
/** Within all limits. */
const longValue = (length: number): string => `X: ${"y".repeat(length)}\r\n`;
const manyFields = (length: number): string => `X: ${"y".repeat(length / 50)}\r\n`.repeat(50);

interface Case {
  readonly name: string;
  /** Of about that many bytes. */
  readonly message: (length: number) => string;
  readonly read: (pieces: readonly Buffer[]) => { readonly taken: boolean };
}

const asRequest: Case["read"] = (pieces) => ({ taken: readRequests(pieces).requests.length === 1 });
const asResponse: Case["read"] = (pieces) => ({ taken: readResponse(pieces).response !== undefined });
const get = "GET / HTTP/1.1\r\nHost: a\r\n";
const ok = "HTTP/1.1 200 OK\r\n";

const maxShortFields = 50_000 / 4;

const cases: readonly Case[] = [
  { name: "a request's head of one line", message: (length) => `${get}${longValue(length)}\r\n`, read: asRequest },
  { name: "a request's head of many lines", message: (length) => `${get}${manyFields(length)}\r\n`, read: asRequest },
  {
    name: "a request's target",
    message: (length) => `GET /${"y".repeat(length)} HTTP/1.1\r\nHost: a\r\n\r\n`,
    read: asRequest,
  },
  {
    name: "trailers of a request",
    message: (length) => `POST / HTTP/1.1\r\nHost: a\r\n${chunked}${manyFields(length)}\r\n`,
    read: asRequest,
  },
  {
    name: "short trailers, where there may be many",
    message: (length) => `POST / HTTP/1.1\r\nHost: a\r\n${chunked}${"a:\r\n".repeat(length / 4)}\r\n`,
    read: (pieces) => ({ taken: readRequests(pieces, { maxFieldCount: maxShortFields }).requests.length === 1 }),
  },
  {
    name: "chunks of a byte",
    message: (length) =>
      `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\na\r\n".repeat(length / 6)}0\r\n\r\n`,
    read: asRequest,
  },
  {
    name: "extensions of a chunk",
    message: (length) =>
      `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1${";b=c".repeat(Math.min(length, 4000) / 4)}\r\na\r\n0\r\n\r\n`,
    read: asRequest,
  },
  {
    name: "a response's head",
    message: (length) => `${ok}Content-Length: 0\r\n${manyFields(length)}\r\n`,
    read: asResponse,
  },
  { name: "trailers of a response", message: (length) => `${ok}${chunked}${manyFields(length)}\r\n`, read: asResponse },
];

const lengths = [10_000, 50_000];
/** Times that each byte may be gone over, by all that reads and carries it on. */
const maxWorkPerByte = 60;

for (const { name, message, read } of cases) {
  test(`${name}, byte by byte`, (t) => {
    const work = countWork(t);
    for (const length of lengths) {
      const text = message(length);
      const pieces = bytesOf(text);
      work.take();
      assert.ok(read(pieces).taken, `${length} bytes are taken`);
      const perByte = work.take() / text.length;
      assert.ok(perByte < maxWorkPerByte, `${perByte} for each of ${length} bytes`);
    }
  });
}

test("a hello in records of a byte, byte by byte", (t) => {
  const work = countWork(t);
  const records = inRecordsOf(helloFrom({ extensions: extension(1234, Buffer.alloc(2400)) }), 1);
  const reader = new ClientHelloReader();
  work.take();
  let outcome = "";
  for (let length = 1; length <= records.length; length += 1) outcome = reader.read(records.subarray(0, length)).type;
  assert.equal(outcome, "hello");
  assert.ok(work.take() / records.length < maxWorkPerByte);
});

test("a request line before its filter chain is chosen, byte by byte", (t) => {
  const work = countWork(t);
  const line = Buffer.from(`GET /${"y".repeat(60_000)} HTTP/1.1\r\n`);
  const reader = new RequestLineReader();
  work.take();
  let finding = "";
  for (let length = 1; length <= line.length; length += 1) finding = reader.read(line.subarray(0, length));
  assert.equal(finding, "http/1.1");
  assert.ok(work.take() / line.length < maxWorkPerByte);
});

/** How many of the bytes have been fed when the message is refused. */
function refusedAfter(pieces: readonly Buffer[], isRefused: (fed: readonly Buffer[]) => boolean): number {
  let least = 1;
  let most = pieces.length;
  assert.ok(isRefused(pieces), "refused at all");
  while (least < most) {
    const middle = (least + most) >> 1;
    if (isRefused(pieces.slice(0, middle))) most = middle;
    else least = middle + 1;
  }
  return least;
}

const limits = { maxHeadBytes: 1000, maxFieldCount: 10 };
const head = "POST / HTTP/1.1\r\nHost: a\r\n";
const oversized: readonly {
  readonly name: string;
  readonly text: string;
  readonly limitAt: number;
  readonly error: string;
}[] = [
  {
    name: "a line of a head",
    text: `${get}X: ${"y".repeat(5000)}\r\n\r\n`,
    limitAt: 1000 + 4,
    error: "431 http1.headers_too_large",
  },
  {
    name: "lines of a head",
    text: `${get}${"X: y\r\n".repeat(100)}\r\n`,
    limitAt: `${get}${"X: y\r\n".repeat(10)}`.length,
    error: "431 http1.too_many_headers",
  },
  {
    name: "lines of a head behind a bad one",
    text: `GET / HTTP/1.1\r\nHost: a\r\nX(): y\r\n${"X: y\r\n".repeat(100)}\r\n`,
    limitAt: `${get}X(): y\r\n${"X: y\r\n".repeat(9)}`.length,
    error: "400 http1.codec_error",
  },
  {
    name: "a line of trailers",
    text: `${head}${chunked}X: ${"y".repeat(5000)}\r\n\r\n`,
    limitAt: `${head}${chunked}`.length + 1000 + 4,
    error: "400 http1.codec_error",
  },
  {
    name: "lines of trailers",
    text: `${head}${chunked}${"X: y\r\n".repeat(100)}\r\n`,
    limitAt: `${head}${chunked}${"X: y\r\n".repeat(11)}`.length,
    error: "400 http1.codec_error",
  },
];

for (const { name, text, limitAt, error } of oversized) {
  test(`too much is refused at the limit: ${name}`, () => {
    const pieces = bytesOf(text);
    assert.equal(readRequests(pieces, limits).error, error);
    assert.equal(
      refusedAfter(pieces, (fed) => readRequests(fed, limits).error !== undefined),
      limitAt,
    );
  });
}
