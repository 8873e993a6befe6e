// What a listener remembers of clients that wait for their server to speak first, and on which evidence.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Listener } from "./listener.ts";
import { type ServedClient, ServerFirst } from "./server-first.ts";

const listener = ({ continues = true, transport = "raw" } = {}): Listener =>
  ({
    continuesAfterListenerFiltersTimeout: continues,
    filterChains: [{ transport: { type: transport } }],
  }) as unknown as Listener;
const from = (remoteIp: string, redirectedFrom?: string): ServedClient => ({
  remoteIp,
  localAddress: redirectedFrom ?? "10.0.0.9:80",
  isDestinationRestored: redirectedFrom !== undefined,
});
const plain = listener();
const alsoTls = listener({ transport: "tls" });
const greeting = Buffer.from("220 mail.test ESMTP\r\n");

const words: readonly { readonly name: string; readonly bytes: string; readonly isKnown: boolean }[] = [
  { name: "SMTP", bytes: "220 mail.test ESMTP\r\n", isKnown: true },
  { name: "MySQL", bytes: "\x4a\0\0\0\x0a8.0.36\0", isKnown: true },
  { name: "SSH", bytes: "SSH-2.0-OpenSSH_9.2\r\n", isKnown: true },
  { name: "an HTTP server whose patience has ended", bytes: "HTTP/1.1 408 Request Timeout\r\n\r\n", isKnown: false },
  { name: "the first byte of such an answer", bytes: "H", isKnown: false },
  { name: "SETTINGS of HTTP/2", bytes: "\0\0\x12\x04\0\0\0\0\0", isKnown: false },
];

for (const { name, bytes, isKnown } of words) {
  test(`${name}: ${isKnown ? "speaks first" : "no evidence"}`, () => {
    const memory = new ServerFirst();
    memory.firstWord(plain, from("10.0.0.1")).ofServer(Buffer.from(bytes, "latin1"));
    assert.equal(memory.waitMs(plain, from("10.0.0.2")), isKnown ? 0 : undefined);
  });
}

test("where the mesh's TLS comes too, one client says nothing of another, and is still given a moment", () => {
  const memory = new ServerFirst();
  memory.firstWord(alsoTls, from("10.0.0.1")).ofServer(greeting);
  assert.equal(memory.waitMs(alsoTls, from("10.0.0.1")), 100);
  assert.equal(memory.waitMs(alsoTls, from("10.0.0.2")), undefined);
});

test("a client that speaks first ends it", () => {
  const memory = new ServerFirst();
  memory.firstWord(plain, from("10.0.0.1")).ofServer(greeting);
  memory.firstWord(plain, from("10.0.0.1")).ofClient();
  assert.equal(memory.waitMs(plain, from("10.0.0.1")), undefined);
});

test("a server behind a listener of redirected connections says nothing of the others", () => {
  const memory = new ServerFirst();
  memory.firstWord(plain, from("10.0.0.1", "10.96.0.1:25")).ofServer(greeting);
  assert.equal(memory.waitMs(plain, from("10.0.0.2", "10.96.0.1:25")), 0);
  assert.equal(memory.waitMs(plain, from("10.0.0.1", "10.96.0.2:25")), undefined);
});

test("nothing is passed on where the time-out closes", () => {
  const memory = new ServerFirst();
  memory.firstWord(plain, from("10.0.0.1")).ofServer(greeting);
  assert.equal(memory.waitMs(listener({ continues: false }), from("10.0.0.1")), undefined);
});

test("of clients beyond 1,024 the oldest are forgotten", () => {
  const memory = new ServerFirst();
  const ip = (index: number): string => `10.0.${index >> 8}.${index & 255}`;
  for (let index = 0; index <= 1024; index += 1) memory.firstWord(alsoTls, from(ip(index))).ofServer(greeting);
  assert.deepEqual(
    [0, 1, 1024].map((index) => memory.waitMs(alsoTls, from(ip(index)))),
    [undefined, 100, 100],
  );
});
